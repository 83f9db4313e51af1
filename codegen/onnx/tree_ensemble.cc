// TreeEnsemble: all trees go down one level at a time, one stage for each level. A place in a tree is the
// number of a node, or the number of nodes plus that of a leaf; a leaf is followed by itself.
#include "codegen/onnx/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/softmax.h"

namespace mycc::onnx {
namespace {

constexpr int kMostLevels = 128;
constexpr int64_t kMostTableEntries = int64_t{1} << 24;
enum TreeTest : int64_t { kAtMost, kBelow, kAtLeast, kAbove, kEqualTo, kOtherThan, kMember, kTreeTestCount };
enum TreeAggregate : int64_t { kTreeAverage, kTreeSum, kTreeMin, kTreeMax };

struct Forest {
  int64_t nodes = 0, leaves = 0;
  // One for each place.
  std::vector<int64_t> features, tests, if_true, if_false, targets, follows_nan;
  std::vector<double> splits, weights;
  std::vector<std::vector<double>> members;  // of a place's set
  std::vector<int64_t> roots;
  bool has_nan_rule = false;

  int64_t places() const { return nodes + leaves; }
  int64_t MostMembers() const {
    size_t most = 0;
    for (const auto& set : members) most = std::max(most, set.size());
    return static_cast<int64_t>(most);
  }
};

absl::StatusOr<std::vector<double>> NumbersOfTensor(const NodeImport& n, const std::string& name) {
  const OnnxAttribute* attribute = n.Attribute(name);
  if (attribute == nullptr || attribute->tensor.value == nullptr)
    return n.Refuse(absl::StrCat("has no tensor ", name, "; expected one"));
  const NDArray& value = *attribute->tensor.value;
  std::vector<double> numbers(static_cast<size_t>(value.num_elements()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = ConvertScalar(DType::kF64, value.dtype, value.Get(static_cast<int64_t>(i))).f;
  return numbers;
}

// The places that one branch of the nodes leads to.
absl::StatusOr<std::vector<int64_t>> BranchOf(const NodeImport& n, const Forest& forest,
                                              const std::string& ids, const std::string& leaf_flags) {
  std::vector<int64_t> branch = n.Ints(ids);
  const std::vector<int64_t> is_leaf = n.Ints(leaf_flags);
  bool fits = static_cast<int64_t>(branch.size()) == forest.nodes && is_leaf.size() == branch.size();
  for (size_t i = 0; fits && i < branch.size(); ++i) {
    fits = branch[i] >= 0 && branch[i] < (is_leaf[i] != 0 ? forest.leaves : forest.nodes);
    if (is_leaf[i] != 0) branch[i] += forest.nodes;
  }
  if (!fits)
    return n.Refuse(absl::StrCat(ids, " and ", leaf_flags, " name no branch of each node; expected one"));
  for (int64_t leaf = 0; leaf < forest.leaves; ++leaf) branch.push_back(forest.nodes + leaf);
  return branch;
}

// The sets of the nodes that test membership, in the nodes' order, each ended by a NaN.
absl::Status ReadMembers(const NodeImport& n, Forest* forest) {
  forest->members.resize(static_cast<size_t>(forest->places()));
  if (std::ranges::count(forest->tests, kMember) == 0) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> values, NumbersOfTensor(n, "membership_values"));
  size_t next = 0;
  for (size_t i = 0; i < forest->tests.size(); ++i) {
    if (forest->tests[i] != kMember) continue;
    for (; next < values.size() && !std::isnan(values[next]); ++next)
      forest->members[i].push_back(values[next]);
    if (next++ >= values.size())
      return n.Refuse("membership_values has fewer sets than there are nodes for; expected one for each");
  }
  return absl::OkStatus();
}

absl::StatusOr<Forest> ReadForest(const NodeImport& n) {
  Forest forest;
  forest.features = n.Ints("nodes_featureids");
  forest.targets = n.Ints("leaf_targetids");
  forest.nodes = static_cast<int64_t>(forest.features.size());
  forest.leaves = static_cast<int64_t>(forest.targets.size());
  MYCC_ASSIGN_OR_RETURN(forest.splits, NumbersOfTensor(n, "nodes_splits"));
  MYCC_ASSIGN_OR_RETURN(forest.weights, NumbersOfTensor(n, "leaf_weights"));
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> tests, NumbersOfTensor(n, "nodes_modes"));
  MYCC_ASSIGN_OR_RETURN(forest.if_true, BranchOf(n, forest, "nodes_truenodeids", "nodes_trueleafs"));
  MYCC_ASSIGN_OR_RETURN(forest.if_false, BranchOf(n, forest, "nodes_falsenodeids", "nodes_falseleafs"));
  const auto nodes = static_cast<size_t>(forest.nodes);
  forest.has_nan_rule = n.HasAttribute("nodes_missing_value_tracks_true");
  forest.follows_nan = n.Ints("nodes_missing_value_tracks_true", std::vector<int64_t>(nodes, 0));
  if (forest.nodes == 0 || forest.splits.size() != nodes || tests.size() != nodes ||
      forest.follows_nan.size() != nodes || forest.weights.size() != forest.targets.size())
    return n.Refuse("its attributes of nodes, or of leaves, have different lengths; expected one length");
  const int64_t width = n.Shape(0)[1], targets = n.Int("n_targets", 0);
  for (size_t i = 0; i < nodes; ++i) {
    if (!(tests[i] >= 0 && tests[i] <= static_cast<double>(int64_t{kMember})) || forest.features[i] < 0 ||
        forest.features[i] >= width)
      return n.Refuse(absl::StrCat("node ", i, " tests feature ", forest.features[i], " of ", width,
                                   " in mode ", tests[i], "; expected a feature, and a mode from 0 to 6"));
    forest.tests.push_back(static_cast<int64_t>(tests[i]));
  }
  for (const int64_t target : forest.targets) {
    if (target < 0 || target >= targets)
      return n.Refuse(absl::StrCat("a leaf has target ", target, "; expected 0 to ", targets - 1));
  }
  forest.roots = n.Ints("tree_roots");
  for (const int64_t root : forest.roots) {
    if (root < 0 || root >= forest.nodes)
      return n.Refuse(absl::StrCat("a tree has the root ", root, "; expected a node"));
  }
  if (forest.roots.empty()) return n.Refuse("has no trees; expected some");
  MYCC_RETURN_IF_ERROR(ReadMembers(n, &forest));
  if (forest.MostMembers() > kMostTableEntries / forest.places())
    return n.NotSupported(
        absl::StrCat("a set of ", forest.MostMembers(), " members with ", forest.places(), " nodes"));
  const auto places = static_cast<size_t>(forest.places());
  forest.features.resize(places);
  forest.tests.resize(places);
  forest.splits.resize(places);
  forest.follows_nan.resize(places);
  forest.targets.insert(forest.targets.begin(), nodes, 0);
  forest.weights.insert(forest.weights.begin(), nodes, 0.0);
  return forest;
}

// The number of levels after which every tree is at a leaf.
absl::StatusOr<int> LevelsOf(const NodeImport& n, const Forest& forest) {
  std::vector<int64_t> level = forest.roots;
  for (int depth = 0; depth <= kMostLevels; ++depth) {
    std::ranges::sort(level);
    level.erase(std::unique(level.begin(), level.end()), level.end());
    std::vector<int64_t> next;
    for (const int64_t place : level) {
      if (place >= forest.nodes) continue;
      next.push_back(forest.if_true[place]);
      next.push_back(forest.if_false[place]);
    }
    if (next.empty()) return depth;
    level = std::move(next);
  }
  return n.NotSupported(absl::StrCat("a tree of more than ", kMostLevels, " levels"));
}

// The forest as tables of the graph.
class TreeWalk {
 public:
  TreeWalk(GraphBuilder* g, const Buffer& x, const Forest& forest) : g_(*g), x_(x), forest_(forest) {
    features_ = g_.Ints(forest.features);
    tests_ = g_.Ints(forest.tests);
    if_true_ = g_.Ints(forest.if_true);
    if_false_ = g_.Ints(forest.if_false);
    follows_nan_ = g_.Ints(forest.follows_nan);
    splits_ = Floats(forest.splits, {forest.places()});
    const auto widest = static_cast<size_t>(forest.MostMembers());
    if (widest == 0) return;
    // A set's free places hold NaN, which equals nothing.
    std::vector<double> sets(static_cast<size_t>(forest.places()) * widest, std::nan(""));
    for (size_t i = 0; i < forest.members.size(); ++i)
      std::ranges::copy(forest.members[i], sets.begin() + static_cast<int64_t>(i * widest));
    sets_ = Floats(sets, {forest.places(), static_cast<int64_t>(widest)});
  }

  Buffer Floats(const std::vector<double>& numbers, std::vector<int64_t> shape) {
    NDArray array = NDArray::Zeros(x_->dtype, std::move(shape));
    for (size_t i = 0; i < numbers.size(); ++i) array.Set(static_cast<int64_t>(i), Scalar{numbers[i], 0});
    return g_.AddConstant(std::move(array));
  }

  // The entry of a table for the place of a tree in an element of the batch.
  Expr Entry(const Buffer& table, const Buffer& places, const Axes& at) const {
    return Load(table, {ClampTo(Load(places, {at[0], at[1]}), IntConst(0), IntConst(forest_.places() - 1))});
  }

  Buffer Start() {
    const Buffer roots = g_.Ints(forest_.roots);
    return g_.Map({x_->shape[0], roots->shape[0]}, [&](const Axes& at) { return Load(roots, {at[1]}); });
  }

  Buffer Next(const Buffer& places) {
    const Buffer feature =
        g_.Map(places->shape, [&](const Axes& at) { return Entry(features_, places, at); });
    const Buffer value = g_.Map(places->shape, [&](const Axes& at) {
      return Load(x_, {at[0], ClampTo(Load(feature, at), IntConst(0), IntConst(x_->shape[1] - 1))});
    });
    const Buffer is_member = Membership(places, value);
    return g_.Map(places->shape, [&](const Axes& at) {
      const Expr v = Load(value, at);
      Expr holds = Test(places, v, is_member, at);
      if (forest_.has_nan_rule) {
        const Expr follows = MakeBinary(Op::kNe, Entry(follows_nan_, places, at), IntConst(0));
        holds = MakeBinary(Op::kOr, holds, MakeBinary(Op::kAnd, follows, MakeBinary(Op::kNe, v, v)));
      }
      return MakeSelect(holds, Entry(if_true_, places, at), Entry(if_false_, places, at));
    });
  }

 private:
  // 1 where the value is in the place's set; null without sets.
  Buffer Membership(const Buffer& places, const Buffer& value) {
    if (sets_ == nullptr) return nullptr;
    return g_.Reduce(ReduceOp::kMax, places->shape, {sets_->shape[1]}, [&](const Axes& at, const Axes& r) {
      const Expr place = ClampTo(Load(places, at), IntConst(0), IntConst(forest_.places() - 1));
      return MakeSelect(MakeBinary(Op::kEq, Load(value, at), Load(sets_, {place, r[0]})), IntConst(1),
                        IntConst(0));
    });
  }

  // Whether the place's test holds; tests that no node has are left out.
  Expr Test(const Buffer& places, const Expr& v, const Buffer& is_member, const Axes& at) const {
    const Expr split = Entry(splits_, places, at), test = Entry(tests_, places, at);
    Expr holds;
    for (int64_t kind = 0; kind < kTreeTestCount; ++kind) {
      const auto end = forest_.tests.begin() + forest_.nodes;
      if (std::find(forest_.tests.begin(), end, kind) == end) continue;
      Expr one;
      switch (kind) {
        case kAtMost: one = AtMost(v, split); break;
        case kBelow: one = LessThan(v, split); break;
        case kAtLeast: one = AtMost(split, v); break;
        case kAbove: one = LessThan(split, v); break;
        case kEqualTo: one = MakeBinary(Op::kEq, v, split); break;
        case kOtherThan: one = MakeBinary(Op::kNe, v, split); break;
        default:
          one =
              is_member == nullptr ? BoolConst(false) : MakeBinary(Op::kEq, Load(is_member, at), IntConst(1));
      }
      holds = holds == nullptr ? one : MakeSelect(MakeBinary(Op::kEq, test, IntConst(kind)), one, holds);
    }
    return holds;
  }

  GraphBuilder& g_;
  const Buffer x_;
  const Forest& forest_;
  Buffer features_, tests_, if_true_, if_false_, follows_nan_, splits_, sets_;
};

// The leaves' weights by targets.
absl::StatusOr<Buffer> Aggregated(NodeImport& n, const Forest& forest, TreeWalk& walk, const Buffer& places) {
  const int64_t how = n.Int("aggregate_function", kTreeSum);
  if (how < kTreeAverage || how > kTreeMax)
    return n.Refuse(absl::StrCat("aggregate_function is ", how, "; expected 0 to 3"));
  const DType dtype = n.Type(0);
  const double largest =
      dtype == DType::kF64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
  const ReduceOp op = how == kTreeMin ? ReduceOp::kMin : how == kTreeMax ? ReduceOp::kMax : ReduceOp::kSum;
  const double none = how == kTreeMin ? largest : how == kTreeMax ? -largest : 0;
  const Buffer targets = n.g().Ints(forest.targets), weights = walk.Floats(forest.weights, {forest.places()});
  const auto trees = static_cast<int64_t>(forest.roots.size());
  const Buffer result =
      n.g().Reduce(op, {n.Shape(0)[0], n.Int("n_targets", 0)}, {trees}, [&](const Axes& at, const Axes& r) {
        const Axes tree = {at[0], r[0]};
        return MakeSelect(MakeBinary(Op::kEq, walk.Entry(targets, places, tree), at[1]),
                          walk.Entry(weights, places, tree), FloatConst(none, dtype));
      });
  if (how != kTreeAverage) return result;
  return n.g().Map(result->shape, [&](const Axes& at) {
    return Quotient(Load(result, at), FloatConst(static_cast<double>(trees), dtype));
  });
}

enum TreeTransform : int64_t { kTreeNone, kTreeSoftmax, kTreeLogistic };

}  // namespace

absl::Status TreeEnsemble(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 2));
  if (IsNarrowFloat(n.Type(0))) return n.NotSupported(absl::StrCat("x of ", TypeText(n.In(0))));
  const int64_t transform = n.Int("post_transform", kTreeNone);
  if (transform < kTreeNone || transform > kTreeLogistic)
    return n.NotSupported(absl::StrCat("post_transform ", transform));
  MYCC_ASSIGN_OR_RETURN(const Forest forest, ReadForest(n));
  MYCC_ASSIGN_OR_RETURN(const int levels, LevelsOf(n, forest));
  GraphBuilder& g = n.g();
  TreeWalk walk(&g, n.In(0), forest);
  Buffer places = walk.Start();
  for (int level = 0; level < levels; ++level) places = walk.Next(places);
  MYCC_ASSIGN_OR_RETURN(Buffer result, Aggregated(n, forest, walk, places));
  if (transform == kTreeSoftmax) result = SoftmaxOver(g, result, {1});
  if (transform == kTreeLogistic) {
    result = g.Map(result->shape, [&](const Axes& at) {
      const Expr x = Load(result, at), one = NumberLike(x, 1);
      return Quotient(one, one + ExpOf(Negative(x)));
    });
  }
  n.Set(0, g.Cast(result, n.Type(0)));
  return absl::OkStatus();
}

}  // namespace mycc::onnx
