// Calls of XGBoost's C interface: one round of many parallel trees is a forest.
#include "tuner/cost/forest.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "xgboost/c_api.h"

namespace mycc {
namespace {

// Tables of numbers and settings of our own: a refusal is a mistake in this file.
void MustSucceed(int result, const char* what) {
  MYCC_CHECK(result == 0) << "xgboost: " << what << ": " << XGBGetLastError();
}

class ForestRows {
 public:
  explicit ForestRows(const NumberTable& table) {
    MustSucceed(XGDMatrixCreateFromMat_omp(table.values.data(), static_cast<bst_ulong>(table.rows()),
                                           static_cast<bst_ulong>(table.width),
                                           std::numeric_limits<float>::quiet_NaN(), &handle_, 1),
                "filling a table");
  }
  ~ForestRows() { XGDMatrixFree(handle_); }
  ForestRows(const ForestRows&) = delete;
  ForestRows& operator=(const ForestRows&) = delete;

  void Set(const char* field, const std::vector<float>& values) {
    MustSucceed(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()), field);
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

// With squared errors of labels 0 and 1 a leaf is the share of its rows that are of the class, and a split is
// the one that lowers Gini's impurity most.
std::vector<std::pair<const char*, std::string>> ForestParams(const ForestConfig& config) {
  return {{"objective", "reg:squarederror"},
          {"base_score", "0"},
          {"nthread", "1"},
          {"verbosity", "0"},
          {"seed", absl::StrCat(config.seed & 0x7fffffff)},
          {"tree_method", "hist"},
          {"max_bin", "64"},
          {"num_parallel_tree", absl::StrCat(config.trees)},
          {"max_depth", absl::StrCat(config.depth)},
          {"eta", "1"},
          {"lambda", "0.5"},
          {"gamma", "0"},
          {"min_child_weight", "1"},
          {"subsample", "0.632"},
          {"colsample_bynode", "0.6"}};
}

}  // namespace

std::vector<double> Forest::Classify(const NumberTable& known, const std::vector<float>& labels,
                                     const std::vector<float>& weights, const NumberTable& asked) {
  MYCC_CHECK(known.rows() > 0 && known.width == asked.width &&
             static_cast<int>(labels.size()) == known.rows())
      << "a forest of " << known.rows() << " rows, " << labels.size() << " labels, asked about rows of "
      << asked.width;
  ForestRows rows(known), questions(asked);
  rows.Set("label", labels);
  rows.Set("weight", weights);
  BoosterHandle forest = nullptr;
  const DMatrixHandle cached = rows.handle();
  MustSucceed(XGBoosterCreate(&cached, 1, &forest), "creating a forest");
  for (const auto& [name, value] : ForestParams(config_))
    MustSucceed(XGBoosterSetParam(forest, name, value.c_str()), name);
  MustSucceed(XGBoosterUpdateOneIter(forest, 0, rows.handle()), "growing");
  constexpr char kConfig[] =
      R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})";
  const bst_ulong* shape = nullptr;
  bst_ulong dims = 0;
  const float* values = nullptr;
  MustSucceed(XGBoosterPredictFromDMatrix(forest, questions.handle(), kConfig, &shape, &dims, &values),
              "asking");
  std::vector<double> probabilities;
  for (int i = 0; i < asked.rows(); ++i) probabilities.push_back(std::clamp<double>(values[i], 0, 1));
  XGBoosterFree(forest);
  return probabilities;
}

}  // namespace mycc
