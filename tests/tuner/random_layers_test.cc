// Random small layers in one workload: products, rows, columns, transposes and elementwise stages that read
// one another's results and share tensors. Each has a default schedule on a GPU, and its lowered code
// computes what the stages say.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "codegen/target/target.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/lowered_point.h"
#include "tests/workload/random_workload.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

class RandomLayers {
 public:
  explicit RandomLayers(uint64_t seed) : dice_(seed), type_(dice_.Pick(Types({"f32", "f16", "bf16"}))) {}

  std::string Text() {
    AddInput(dice_.Pick(sizes_), dice_.Pick(sizes_));
    const int64_t layers = 2 + dice_.Below(4);
    for (int64_t l = 0; l < layers; ++l) AddLayer();
    std::vector<std::string> outputs;
    std::string stages;
    for (const Stage& stage : stages_) {
      if (!tensors_.at(stage.tensor).is_read)
        outputs.push_back(absl::StrCat(stage.tensor, ": ", TypeOf(stage.tensor)));
      absl::StrAppend(&stages, "  ", stage.tensor, "[", stage.axes, "]",
                      tensors_.at(stage.tensor).is_read ? absl::StrCat(": ", TypeOf(stage.tensor)) : "",
                      " = ", stage.value, "\n");
    }
    return absl::Substitute("workload layers($0) -> ($1) {\n$2}", absl::StrJoin(inputs_, ", "),
                            absl::StrJoin(outputs, ", "), stages);
  }

 private:
  using Types = std::vector<std::string>;
  struct Tensor {
    std::string type;
    std::vector<int64_t> shape;
    bool is_read = false;
  };
  struct Stage {
    std::string tensor, axes, value;
  };

  std::string TypeOf(const std::string& name) const {
    return absl::StrCat(tensors_.at(name).type, "[", absl::StrJoin(tensors_.at(name).shape, ","), "]");
  }

  std::string AddInput(int64_t rows, int64_t columns) {
    const std::string name = absl::StrCat("x", inputs_.size());
    tensors_[name] = {type_, {rows, columns}};
    inputs_.push_back(absl::StrCat(name, ": ", TypeOf(name)));
    matrices_.push_back(name);
    return name;
  }

  std::string AddStage(std::vector<int64_t> shape, const std::string& axes, const std::string& value,
                       const std::string& type = "f32") {
    const std::string name = absl::StrCat("s", stages_.size());
    if (shape.size() == 2) matrices_.push_back(name);
    tensors_[name] = {type, std::move(shape)};
    stages_.push_back({name, axes, value});
    return name;
  }

  // An element of a tensor, in f32.
  std::string Read(const std::string& name, const std::string& index) {
    tensors_.at(name).is_read = true;
    const std::string element = absl::StrCat(name, "[", index, "]");
    return tensors_.at(name).type == "f32" ? element : absl::StrCat("f32(", element, ")");
  }

  void AddProduct(const std::string& x, int64_t rows, int64_t depth) {
    std::vector<std::pair<std::string, bool>> factors;  // name, and whether its columns are the depth
    for (const std::string& name : matrices_) {
      for (const bool across : {false, true})
        if (tensors_.at(name).shape[across ? 1 : 0] == depth) factors.emplace_back(name, across);
    }
    if (factors.empty() || dice_.Chance(30)) factors = {{AddInput(depth, dice_.Pick(sizes_)), false}};
    const auto [w, across] = dice_.Pick(factors);
    const int64_t columns = tensors_.at(w).shape[across ? 0 : 1];
    // Results stay as large as what they are made of.
    const std::string product = AddStage(
        {rows, columns}, "i,j",
        absl::Substitute("sum[k:$0]($1 * $2)", depth, Read(x, "i,k"), Read(w, across ? "j,k" : "k,j")));
    AddStage({rows, columns}, "i,j",
             absl::StrCat(type_ == "f32" ? "(" : type_ + "(", Read(product, "i,j"), " * 0.125)"), type_);
  }

  void AddSoftmax(const std::string& x, int64_t rows, int64_t columns) {
    const std::string most =
        AddStage({rows}, "i", absl::Substitute("max[k:$0]($1)", columns, Read(x, "i,k")));
    const std::string e =
        AddStage({rows, columns}, "i,j", absl::StrCat("exp(", Read(x, "i,j"), " - ", Read(most, "i"), ")"));
    const std::string sum = AddStage({rows}, "i", absl::Substitute("sum[k:$0]($1)", columns, Read(e, "i,k")));
    AddStage({rows, columns}, "i,j", absl::StrCat(Read(e, "i,j"), " / ", Read(sum, "i")));
  }

  void AddLayer() {
    const std::string x = dice_.Pick(matrices_);
    const int64_t rows = tensors_.at(x).shape[0], columns = tensors_.at(x).shape[1];
    switch (dice_.Below(7)) {
      case 0: return AddSoftmax(x, rows, columns);
      case 1: AddStage({columns, rows}, "i,j", Read(x, "j,i")); return;
      case 2: AddStage({rows}, "i", absl::Substitute("sum[k:$0]($1)", columns, Read(x, "i,k"))); return;
      case 3: AddStage({columns}, "j", absl::Substitute("max[k:$0]($1)", rows, Read(x, "k,j"))); return;
      case 4: AddStage({rows, columns}, "i,j", absl::StrCat("tanh(", Read(x, "i,j"), ") * 0.5")); return;
      default: return AddProduct(x, rows, columns);
    }
  }

  Dice dice_;
  const std::string type_;  // of inputs, and of what products are rounded to
  const std::vector<int64_t> sizes_ = {9, 16, 28, 33, 40};
  std::vector<std::string> inputs_, matrices_;
  std::map<std::string, Tensor> tensors_;
  std::vector<Stage> stages_;
};

TEST(RandomLayersTest, DefaultsOfGpusMeanWhatTheStagesSay) {
  for (int seed = 0; seed < RandomSeeds(24); ++seed) {
    const std::string text = RandomLayers(static_cast<uint64_t>(seed)).Text();
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", text));
    const Workload workload = CanonicalWorkload(text);
    for (const char* preset : {"h200", "a100"}) {
      const absl::StatusOr<Target> target = ParseTarget(preset);
      ASSERT_TRUE(target.ok()) << target.status();
      const Sketch sketch = GenerateSketches(workload, *target).front();
      EXPECT_FALSE(absl::StrContains(sketch.name, "naive"));
      const absl::Status same = CheckLoweredPoint(workload, *target, sketch, sketch.default_choice, 4e-2);
      EXPECT_TRUE(same.ok()) << preset << ", " << sketch.name << ": " << same;
    }
  }
}

}  // namespace
}  // namespace mycc
