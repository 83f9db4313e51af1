#include "codegen/onnx/batch_normalization.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

enum BatchNormInput : size_t { kBatchX, kBatchScale, kBatchBias, kBatchMean, kBatchVariance };

struct BatchNorm {
  std::vector<int64_t> parameter_shape;  // [C]; without `spatial`, that of one element of the batch
  DType dtype;                           // of the computation
  bool is_spatial = true;

  // The parameter of the element of x at `at`.
  Expr At(const Buffer& parameter, const Axes& at) const {
    if (!is_spatial) return Load(parameter, Axes(at.begin() + 1, at.end()));
    return Load(parameter, {at.size() > 1 ? at[1] : IntConst(0)});
  }
  // The axes that the statistics of a batch are made over.
  std::vector<int64_t> BatchAxes(size_t rank) const {
    std::vector<int64_t> axes = {0};
    for (size_t i = 2; is_spatial && i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }
};

absl::StatusOr<BatchNorm> CheckBatchNorm(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(5));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(kBatchX, 1, 16));
  BatchNorm norm;
  norm.is_spatial = n.opset() >= 9 || n.Int("spatial", 1) != 0;
  const std::vector<int64_t>& shape = n.Shape(kBatchX);
  norm.parameter_shape = norm.is_spatial ? std::vector<int64_t>{shape.size() > 1 ? shape[1] : 1}
                                         : std::vector<int64_t>(shape.begin() + 1, shape.end());
  norm.dtype = DType::kF32;
  for (size_t i = kBatchX; i <= kBatchVariance; ++i) {
    MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
    if (n.Type(i) == DType::kF64) norm.dtype = DType::kF64;
    if (i > kBatchX && n.Shape(i) != norm.parameter_shape) {
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected ",
                                   ShapeText(norm.parameter_shape), " for x of ", ShapeText(shape)));
    }
  }
  return norm;
}

// x scaled and shifted. The factors are stages over the channels alone, so that those of constants are
// constants.
Buffer BatchNormalized(NodeImport& n, const BatchNorm& norm, const Buffer& mean, const Buffer& variance) {
  GraphBuilder& g = n.g();
  const Buffer x = n.In(kBatchX), scale = n.In(kBatchScale), bias = n.In(kBatchBias);
  const auto as_computed = [&](const Buffer& tensor, const Axes& at) {
    return MakeCast(norm.dtype, Load(tensor, at));
  };
  const Expr epsilon = FloatConst(n.Float("epsilon", 1e-5), norm.dtype);
  const Buffer factor = g.Map(norm.parameter_shape, [&](const Axes& at) {
    return Quotient(as_computed(scale, at), MakeUnary(Op::kSqrt, as_computed(variance, at) + epsilon));
  });
  const Buffer shift = g.Map(norm.parameter_shape, [&](const Axes& at) {
    return as_computed(bias, at) - as_computed(mean, at) * Load(factor, at);
  });
  return g.Map(x->shape, [&](const Axes& at) {
    return MakeCast(x->dtype, as_computed(x, at) * norm.At(factor, at) + norm.At(shift, at));
  });
}

// The old value of a statistic and that of the batch, mixed.
Buffer MixedStatistic(NodeImport& n, const BatchNorm& norm, const Buffer& old, const Buffer& fresh) {
  const double momentum = n.Float("momentum", 0.9);
  return n.g().Map(norm.parameter_shape, [&](const Axes& at) {
    const Expr kept = MakeCast(norm.dtype, Load(old, at)) * FloatConst(momentum, norm.dtype);
    return MakeCast(old->dtype, kept + Load(fresh, at) * FloatConst(1 - momentum, norm.dtype));
  });
}

// Normalizes by the batch's own statistics, and gives these.
void TrainBatchNorm(NodeImport& n, const BatchNorm& norm) {
  GraphBuilder& g = n.g();
  const Buffer x = n.In(kBatchX);
  const std::vector<int64_t> axes = norm.BatchAxes(x->shape.size());
  const Expr count = FloatConst(static_cast<double>(CountOver(x->shape, axes)), norm.dtype);
  const auto mean_of = [&](const std::function<Expr(const Axes&)>& value) {
    Buffer sums = ReduceOver(g, ReduceOp::kSum, x->shape, axes, false, value);
    sums = g.AddReshape(sums, norm.parameter_shape);
    return g.Map(norm.parameter_shape, [&](const Axes& at) { return Quotient(Load(sums, at), count); });
  };
  const auto element = [&](const Axes& at) { return MakeCast(norm.dtype, Load(x, at)); };
  const Buffer mean = mean_of(element);
  const Buffer variance = mean_of([&](const Axes& at) {
    const Expr difference = element(at) - norm.At(mean, at);
    return difference * difference;
  });
  n.Set(0, BatchNormalized(n, norm, mean, variance));
  n.Set(1, MixedStatistic(n, norm, n.In(kBatchMean), mean));
  n.Set(2, MixedStatistic(n, norm, n.In(kBatchVariance), variance));
  n.Set(3, g.Cast(mean, x->dtype));
  n.Set(4, g.Cast(variance, x->dtype));
}

}  // namespace

// Before opset 14 a node is trained when it has an output of the statistics.
absl::Status BatchNormalization(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const BatchNorm norm, CheckBatchNorm(n));
  bool is_training = n.Int("training_mode", 0) != 0;
  for (size_t i = 1; n.opset() < 14 && i < n.num_outputs(); ++i) is_training |= n.Wants(i);
  if (is_training) {
    TrainBatchNorm(n, norm);
  } else {
    n.Set(0, BatchNormalized(n, norm, n.In(kBatchMean), n.In(kBatchVariance)));
  }
  return absl::OkStatus();
}

}  // namespace mycc::onnx
