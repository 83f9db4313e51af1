#include "tests/graph/random_graph.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(uint64_t seed) : random_(seed), builder_(absl::StrCat("random", seed)) {
    tensors_.push_back(builder_.AddInput("image", DType::kF32, {1, 3, 4, 5}));
    tensors_.push_back(builder_.AddInput("rows", DType::kF32, {4, 6}));
  }

  Graph Run() {
    const int64_t steps = 3 + Below(10);
    for (int64_t i = 0; i < steps; ++i) {
      builder_.SetOrigins({absl::StrCat("Step s", i)});
      const Buffer source = tensors_[tensors_.size() - 1 - Below(std::min<int64_t>(tensors_.size(), 4))];
      const Buffer made = Step(source);
      if (made != source) tensors_.push_back(made);
    }
    AddOutputs();
    return builder_.Finish();
  }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  Buffer Step(const Buffer& x) {
    const int64_t rank = static_cast<int64_t>(x->shape.size());
    switch (Below(11)) {
      case 0: return rank == 4 ? Conv3x3(&builder_, x, 1 + Below(4)) : x;
      case 1: return rank == 2 ? Product(&builder_, x, 1 + Below(6)) : x;
      case 2: return rank > 0 ? BiasAndRelu(&builder_, x, static_cast<int>(Below(rank))) : x;
      case 3: return rank > 0 ? Softmax(&builder_, x) : x;
      case 4: return Shuffled(x);
      case 5: return Reshaped(x);
      case 6: return rank > 0 ? Slice(x) : x;
      case 7: return Partner(x);
      case 8: return rank > 1 ? Mean(x) : x;
      case 9: return builder_.Call("copy", {}, {x}, {{x->dtype, x->shape}})[0];
      default: return Unary(&builder_, Below(2) == 0 ? Op::kTanh : Op::kAbs, x);
    }
  }

  Buffer Shuffled(const Buffer& x) {
    std::vector<int> permutation;
    for (size_t i = 0; i < x->shape.size(); ++i) permutation.push_back(static_cast<int>(i));
    for (size_t i = permutation.size(); i-- > 1;)
      std::swap(permutation[i], permutation[Below(static_cast<int64_t>(i) + 1)]);
    return Transposed(&builder_, x, permutation);
  }

  Buffer Reshaped(const Buffer& x) {
    std::vector<int64_t> shape = x->shape;
    switch (Below(3)) {
      case 0: shape = {x->num_elements()}; break;
      case 1: shape.insert(shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1), 1); break;
      default:
        shape = {1, 1, 1, 1};
        for (size_t i = 0; i < x->shape.size(); ++i) shape[std::min<size_t>(i, 3)] *= x->shape[i];
    }
    return shape.size() > 4 ? x : builder_.AddReshape(x, shape);
  }

  Buffer Slice(const Buffer& x) {
    const int64_t dim = Below(static_cast<int64_t>(x->shape.size())), first = Below(x->shape[dim]);
    std::vector<int64_t> shape = x->shape;
    shape[dim] -= first;
    return builder_.Map(shape, [&](Axes a) {
      a[dim] = a[dim] + first;
      return Load(x, a);
    });
  }

  // The sum with another tensor of the shape, or with itself.
  Buffer Partner(const Buffer& x) {
    const Buffer other = tensors_[Below(static_cast<int64_t>(tensors_.size()))];
    return Sum(&builder_, x, other->shape == x->shape ? other : x);
  }

  Buffer Mean(const Buffer& x) {
    const std::vector<int64_t> kept(x->shape.begin(), x->shape.end() - 1);
    return builder_.Reduce(ReduceOp::kSum, kept, {x->shape.back()}, [&](Axes a, const Axes& r) {
      a.push_back(r[0]);
      return Load(x, a);
    });
  }

  void AddOutputs() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const bool is_last = i + 1 == tensors_.size();
      if (is_last || Below(5) == 0) builder_.AddOutput(absl::StrCat("out", i), tensors_[i]);
    }
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  std::vector<Buffer> tensors_;
};

}  // namespace

Graph RandomGraph(uint64_t seed) { return GraphMaker(seed).Run(); }

}  // namespace mycc
