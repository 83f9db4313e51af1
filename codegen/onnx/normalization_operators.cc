// Normalizations by statistics of the tensor itself: means and variances over some of its axes, norms, and
// windows of channels. They are computed in f32 where the type is narrower, and rounded once at the end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/batch_normalization.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

using ElementValue = std::function<Expr(const Axes&)>;

// Means over axes of a tensor, which keep extent 1.
Buffer MeanOver(GraphBuilder& g, const std::vector<int64_t>& shape, const std::vector<int64_t>& axes,
                const ElementValue& value) {
  const Buffer sums = ReduceOver(g, ReduceOp::kSum, shape, axes, true, value);
  const auto count = static_cast<double>(CountOver(shape, axes));
  return g.Map(sums->shape, [&](const Axes& at) {
    const Expr sum = Load(sums, at);
    return count == 1 ? sum : Quotient(sum, NumberLike(sum, count));
  });
}

struct Moments {
  Buffer mean, variance;  // with extents of 1 at the axes
};

// The mean of many elements is taken of their differences from the first of them: rounding in a long sum is a
// share of the sum, and an image of one colour has no variance.
Moments MomentsOver(GraphBuilder& g, const std::vector<int64_t>& shape, const std::vector<int64_t>& axes,
                    const ElementValue& value) {
  constexpr int64_t kMany = 4096;
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape[axis];
  const auto first = [&](Axes at) {
    for (int64_t axis : axes) at[axis] = IntConst(0);
    return value(at);
  };
  Buffer mean = count <= kMany
                    ? MeanOver(g, shape, axes, value)
                    : MeanOver(g, shape, axes, [&](const Axes& at) { return value(at) - first(at); });
  if (count > kMany)
    mean = g.Map(mean->shape,
                 [&, differences = mean](const Axes& at) { return first(at) + Load(differences, at); });
  const Buffer variance = MeanOver(g, shape, axes, [&](const Axes& at) {
    const Expr difference = value(at) - BroadcastLoad(mean, at);
    return difference * difference;
  });
  return {mean, variance};
}

// 1 / sqrt(variance + epsilon).
Buffer InverseDeviation(NodeImport& n, const Buffer& variance) {
  const double epsilon = n.Float("epsilon", 1e-5);
  return n.g().Map(variance->shape, [&](const Axes& at) {
    const Expr value = Load(variance, at);
    return MakeUnary(Op::kRsqrt, value + NumberLike(value, epsilon));
  });
}

// Refuses an input that is not of the shape.
absl::Status ExpectShape(const NodeImport& n, size_t i, const std::vector<int64_t>& shape) {
  if (n.Shape(i) == shape) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected ", ShapeText(shape)));
}

absl::Status ExpectBroadcastTo(const NodeImport& n, size_t i, const std::vector<int64_t>& shape) {
  const auto all = BroadcastShape({n.Shape(i), shape});
  if (all.ok() && *all == shape) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)),
                               "; expected a shape that is broadcast to ", ShapeText(shape)));
}

// Each channel of each element of the batch by itself.
absl::Status InstanceNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 2, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 16));
  const Buffer x = n.In(0), scale = n.In(1), bias = n.In(2);
  for (size_t i : {1, 2}) MYCC_RETURN_IF_ERROR(ExpectShape(n, i, {x->shape[1]}));
  const Moments moments = MomentsOver(n.g(), x->shape, AxesFrom(2, x->shape.size()),
                                      [&](const Axes& at) { return Wide(Load(x, at)); });
  const Buffer inverse = InverseDeviation(n, moments.variance);
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr centered = Wide(Load(x, at)) - BroadcastLoad(moments.mean, at);
    const Expr factor = BroadcastLoad(inverse, at) * Wide(Load(scale, {at[1]}));
    return MakeCast(x->dtype, centered * factor + Wide(Load(bias, {at[1]})));
  }));
  return absl::OkStatus();
}

// Groups of channels. Scale and bias are one for each group in opset 18, and one for each channel later.
absl::Status GroupNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 2, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 15));
  const Buffer x = n.In(0), scale = n.In(1), bias = n.In(2);
  const int64_t channels = x->shape[1], groups = n.Int("num_groups", 0);
  if (groups < 1 || channels % groups != 0)
    return n.Refuse(absl::StrCat(channels, " channels in ", groups, " groups; expected a divisor of them"));
  const bool is_by_group = n.opset() < 21;
  for (size_t i : {1, 2}) MYCC_RETURN_IF_ERROR(ExpectShape(n, i, {is_by_group ? groups : channels}));
  const int64_t group_size = std::max<int64_t>(channels / groups, 1);
  std::vector<int64_t> grouped = {x->shape[0], groups, channels / groups};
  grouped.insert(grouped.end(), x->shape.begin() + 2, x->shape.end());
  const Moments moments = MomentsOver(n.g(), grouped, AxesFrom(2, grouped.size()), [&](const Axes& at) {
    Axes index(at.begin() + 1, at.end());
    index[0] = at[0];
    index[1] = at[1] * group_size + at[2];
    return Wide(Load(x, index));
  });
  const Buffer inverse = InverseDeviation(n, moments.variance);
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr group = FloorDiv(at[1], group_size), parameter = is_by_group ? group : at[1];
    Axes of_group(grouped.size(), IntConst(0));
    of_group[0] = at[0];
    of_group[1] = group;
    const Expr centered = Wide(Load(x, at)) - Load(moments.mean, of_group);
    const Expr factor = Load(inverse, of_group) * Wide(Load(scale, {parameter}));
    return MakeCast(x->dtype, centered * factor + Wide(Load(bias, {parameter})));
  }));
  return absl::OkStatus();
}

// The type of the statistics that LayerNormalization gives. They are computed in f32 or f64.
absl::StatusOr<DType> StashType(const NodeImport& n) {
  const int64_t type = n.Int("stash_type", kFloat);
  switch (type) {
    case kFloat:
    case kFloat16:
    case kBfloat16:
    case kDouble: return *StorageOf(static_cast<int>(type));
    default: return n.Refuse(absl::StrCat("stash_type is ", type, "; expected a float of at least 16 bits"));
  }
}

absl::Status LayerNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  const size_t last = n.Has(2) ? 2 : 1;
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, last, kTakesFloats));
  for (size_t i = 1; i <= last; ++i) MYCC_RETURN_IF_ERROR(ExpectBroadcastTo(n, i, n.Shape(0)));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -1), n.Rank(0)));
  MYCC_ASSIGN_OR_RETURN(const DType stash_type, StashType(n));
  const Buffer x = n.In(0);
  const Moments moments = MomentsOver(n.g(), x->shape, AxesFrom(axis, x->shape.size()),
                                      [&](const Axes& at) { return Wide(Load(x, at)); });
  const Buffer inverse = InverseDeviation(n, moments.variance);
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr centered = Wide(Load(x, at)) - BroadcastLoad(moments.mean, at);
    const Expr scaled = centered * BroadcastLoad(inverse, at) * Wide(BroadcastLoad(n.In(1), at));
    return MakeCast(x->dtype, n.Has(2) ? scaled + Wide(BroadcastLoad(n.In(2), at)) : scaled);
  }));
  if (n.Wants(1)) n.Set(1, n.g().Cast(moments.mean, stash_type));
  if (n.Wants(2)) n.Set(2, n.g().Cast(inverse, stash_type));
  return absl::OkStatus();
}

// The result is of the scale's type.
absl::Status RMSNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  for (size_t i : {0, 1}) MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
  MYCC_RETURN_IF_ERROR(ExpectBroadcastTo(n, 1, n.Shape(0)));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -1), n.Rank(0)));
  const Buffer x = n.In(0), scale = n.In(1);
  const bool is_double = x->dtype == DType::kF64 || scale->dtype == DType::kF64;
  const DType dtype = is_double ? DType::kF64 : DType::kF32;
  const auto element = [&](const Axes& at) { return MakeCast(dtype, Load(x, at)); };
  const Buffer squares = MeanOver(n.g(), x->shape, AxesFrom(axis, x->shape.size()),
                                  [&](const Axes& at) { return element(at) * element(at); });
  const Buffer inverse = InverseDeviation(n, squares);
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr factor = MakeCast(dtype, BroadcastLoad(scale, at));
    return MakeCast(scale->dtype, element(at) * BroadcastLoad(inverse, at) * factor);
  }));
  return absl::OkStatus();
}

absl::Status MeanVarianceNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_ASSIGN_OR_RETURN(const auto axes, n.AxesOf(n.Ints("axes", {0, 2, 3}), n.Rank(0)));
  constexpr double kEpsilon = 1e-9;  // added to the deviation
  const Buffer x = n.In(0);
  const Moments moments =
      MomentsOver(n.g(), x->shape, axes, [&](const Axes& at) { return Wide(Load(x, at)); });
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr centered = Wide(Load(x, at)) - BroadcastLoad(moments.mean, at);
    const Expr deviation = MakeUnary(Op::kSqrt, BroadcastLoad(moments.variance, at));
    return MakeCast(x->dtype, Quotient(centered, deviation + NumberLike(deviation, kEpsilon)));
  }));
  return absl::OkStatus();
}

// A row divided by its norm; zeros stay zeros.
absl::Status LpNormalization(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  const int64_t p = n.Int("p", 2);
  if (p != 1 && p != 2) return n.Refuse(absl::StrCat("p is ", p, "; expected 1 or 2"));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -1), n.Rank(0)));
  const Buffer x = n.In(0);
  const Buffer sums = ReduceOver(n.g(), ReduceOp::kSum, x->shape, {axis}, true, [&](const Axes& at) {
    const Expr element = Wide(Load(x, at));
    return p == 1 ? Magnitude(element) : element * element;
  });
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr element = Wide(Load(x, at)), sum = BroadcastLoad(sums, at), zero = NumberLike(sum, 0);
    const Expr norm = p == 1 ? sum : MakeUnary(Op::kSqrt, sum);
    const Expr is_zero = MakeBinary(Op::kEq, sum, zero);
    return MakeCast(x->dtype, MakeSelect(is_zero, zero, Quotient(element, norm)));
  }));
  return absl::OkStatus();
}

// x with zero channels around it: `before` of them, and as many as `size` in all less one.
Buffer WithZeroChannels(GraphBuilder& g, const Buffer& x, int64_t size) {
  std::vector<int64_t> shape = x->shape;
  const int64_t channels = shape[1], before = (size - 1) / 2;
  shape[1] += size - 1;
  return g.Map(shape, [&](const Axes& at) {
    const Expr zero = FloatConst(0, WideTypeOf(x->dtype)), channel = at[1];
    if (x->num_elements() == 0) return zero;
    Axes index = at;
    index[1] = channel - before;
    const Expr is_inside = MakeBinary(Op::kAnd, AtMost(IntConst(before), channel),
                                      LessThan(channel, IntConst(before + channels)));
    return MakeSelect(is_inside, Wide(Load(x, index)), zero);
  });
}

// Local response: sums of squares over a window of channels around each.
absl::Status LRN(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 15));
  const int64_t size = n.Int("size", 0);
  constexpr int64_t kLargestSize = int64_t{1} << 20;
  if (size < 1 || size > kLargestSize)
    return n.Refuse(absl::StrCat("size is ", size, "; expected 1 to ", kLargestSize));
  const double alpha = n.Float("alpha", 1e-4) / static_cast<double>(size);
  const double beta = n.Float("beta", 0.75), bias = n.Float("bias", 1);
  const Buffer x = n.In(0), padded = WithZeroChannels(n.g(), x, size);
  const Buffer sums = n.g().Reduce(ReduceOp::kSum, x->shape, {size}, [&](const Axes& at, const Axes& r) {
    Axes index = at;
    index[1] = at[1] + r[0];
    return Load(padded, index) * Load(padded, index);
  });
  n.Set(0, n.g().Map(x->shape, [&](const Axes& at) {
    const Expr sum = Load(sums, at);
    const Expr base = NumberLike(sum, bias) + NumberLike(sum, alpha) * sum;
    return MakeCast(x->dtype, Quotient(Wide(Load(x, at)), MakeBinary(Op::kPow, base, NumberLike(sum, beta))));
  }));
  return absl::OkStatus();
}

constexpr Operator kNormalizationTable[] = {
    {"BatchNormalization", BatchNormalization},
    {"GroupNormalization", GroupNormalization, 18},
    {"InstanceNormalization", InstanceNormalization},
    {"LRN", LRN},
    {"LayerNormalization", LayerNormalization, 17},
    {"LpNormalization", LpNormalization},
    {"MeanVarianceNormalization", MeanVarianceNormalization, 9},
    {"RMSNormalization", RMSNormalization, 23},
};

}  // namespace

std::span<const Operator> NormalizationOperators() { return kNormalizationTable; }

}  // namespace mycc::onnx
