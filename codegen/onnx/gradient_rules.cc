// The table of the rules of Gradient, and those that are no products.
#include "codegen/onnx/gradient_rules.h"

#include <cmath>
#include <map>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

// The gradient of the only input, from the gradient dy, the input x and the output y.
template <Term (*function)(const Term& dy, const Term& x, const Term& y)>
absl::Status OfOne(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  if (d.Needs(0)) d.Give(0, function(d.Gradient(), d.In(0), d.Out()));
  return absl::OkStatus();
}

// dy where the condition holds, elsewhere zero.
Term WhereElseZero(const Term& condition, const Term& dy) {
  return ChoiceOf(condition, dy, dy.writer->Number(0, dy));
}
Term IsPositive(const Term& x) { return IsGreater(x, x.writer->Number(0, x)); }

Term OfAbs(const Term& dy, const Term& x, const Term&) { return dy * SignOf(x); }
Term OfCos(const Term& dy, const Term& x, const Term&) { return -(dy * UnaryTerm("Sin", x)); }
Term OfErf(const Term& dy, const Term& x, const Term&) {
  return dy * (2 / std::sqrt(std::numbers::pi) * ExpOf(-(x * x)));
}
Term OfExp(const Term& dy, const Term&, const Term& y) { return dy * y; }
Term OfLog(const Term& dy, const Term& x, const Term&) { return dy / x; }
Term OfNeg(const Term& dy, const Term&, const Term&) { return -dy; }
Term OfReciprocal(const Term& dy, const Term&, const Term& y) { return -(dy * (y * y)); }
Term OfRelu(const Term& dy, const Term& x, const Term&) { return WhereElseZero(IsPositive(x), dy); }
Term OfReshape(const Term& dy, const Term& x, const Term&) { return ReshapedTo(dy, x.shape()); }
Term OfSigmoid(const Term& dy, const Term&, const Term& y) { return dy * (y * (1 - y)); }
Term OfSin(const Term& dy, const Term& x, const Term&) { return dy * UnaryTerm("Cos", x); }
Term OfSoftplus(const Term& dy, const Term& x, const Term&) { return dy * UnaryTerm("Sigmoid", x); }
Term OfSqrt(const Term& dy, const Term&, const Term& y) { return dy / (2 * y); }
Term OfTanh(const Term& dy, const Term&, const Term& y) { return dy * (1 - y * y); }

// The gradient of an operator that only moves or repeats elements.
Term OfMove(const Term& dy, const Term&, const Term&) { return dy; }

Term OfCast(const Term& dy, const Term& x, const Term&) { return ConvertedTo(dy, x.type()); }

// Functions that are constant between jumps.
absl::Status NoGradient(GradientNode&) { return absl::OkStatus(); }

absl::Status OfAdd(GradientNode& d) {
  for (size_t i : {0, 1}) d.Give(i, d.Gradient());
  return d.n.Expect(2);
}

absl::Status OfSub(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  d.Give(0, d.Gradient());
  if (d.Needs(1)) d.Give(1, -d.Gradient());
  return absl::OkStatus();
}

absl::Status OfMul(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  for (size_t i : {0, 1}) {
    if (d.Needs(i)) d.Give(i, d.Gradient() * d.In(1 - i));
  }
  return absl::OkStatus();
}

absl::Status OfDiv(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  if (d.Needs(0)) d.Give(0, d.Gradient() / d.In(1));
  if (d.Needs(1)) d.Give(1, -(d.Gradient() * d.Out()) / d.In(1));
  return absl::OkStatus();
}

// The exponent may be of another type. Where it is zero the result does not depend on x, even at x = 0.
absl::Status OfPow(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  const Term x = d.In(0);
  const Term p = ConvertedTo(d.In(1), x.type()), zero = d.writer().Number(0, x);
  if (d.Needs(0)) {
    d.Give(0, ChoiceOf(IsEqual(p, zero), zero, d.Gradient() * (p * Power(x, p - d.writer().Number(1, x)))));
  }
  // The logarithm is there for positive x alone; at zero the function of the exponent is constant.
  if (d.Needs(1)) {
    const Term positive = ChoiceOf(IsPositive(x), x, d.writer().Number(1, x));
    d.Give(1, ConvertedTo(d.Gradient() * d.Out() * LogOf(positive), d.In(1).type()));
  }
  return absl::OkStatus();
}

absl::Status OfLeakyRelu(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  const Term dy = d.Gradient();
  d.Give(0, ChoiceOf(IsPositive(d.In(0)), dy, d.n.Float("alpha", 0.01) * dy));
  return absl::OkStatus();
}

absl::Status OfElu(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  const Term dy = d.Gradient();
  d.Give(0, ChoiceOf(IsPositive(d.In(0)), dy, dy * (d.n.Float("alpha", 1) + d.Out())));
  return absl::OkStatus();
}

// An element between the limits is its own result.
absl::Status OfClip(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  if (d.Needs(1) || d.Needs(2)) return d.n.NotSupported("the gradient of a limit");
  d.Give(0, WhereElseZero(IsEqual(d.In(0), d.Out()), d.Gradient()));
  return absl::OkStatus();
}

// The largest or smallest of several tensors. Equal elements share the gradient.
absl::Status OfExtreme(GradientNode& d) {
  const Term dy = d.Gradient(), y = d.Out();
  std::vector<Term> are_extreme;
  for (size_t i = 0; i < d.n.num_inputs(); ++i)
    are_extreme.push_back(ConvertedTo(IsEqual(d.In(i), y), y.type()));
  const Term share = dy / d.writer().Add("Sum", are_extreme);
  for (size_t i = 0; i < d.n.num_inputs(); ++i) d.Give(i, are_extreme[i] * share);
  return absl::OkStatus();
}

absl::Status OfSum(GradientNode& d) {
  for (size_t i = 0; i < d.n.num_inputs(); ++i) d.Give(i, d.Gradient());
  return absl::OkStatus();
}

absl::Status OfMean(GradientNode& d) {
  const Term share = 1.0 / static_cast<double>(d.n.num_inputs()) * d.Gradient();
  for (size_t i = 0; i < d.n.num_inputs(); ++i) d.Give(i, share);
  return absl::OkStatus();
}

absl::Status OfWhere(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(3));
  const Term dy = d.Gradient(), zero = d.writer().Number(0, dy);
  if (d.Needs(1)) d.Give(1, ChoiceOf(d.In(0), dy, zero));
  if (d.Needs(2)) d.Give(2, ChoiceOf(d.In(0), zero, dy));
  return absl::OkStatus();
}

// The axes of a reduction, sorted.
absl::StatusOr<std::vector<int64_t>> ReducedAxesOf(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(std::vector<int64_t> axes, n.IntsOrInput("axes", 1));
  if (axes.empty() && n.Int("noop_with_empty_axes", 0) == 0) axes = AxesFrom(0, n.Shape(0).size());
  return n.AxesOf(std::move(axes), n.Rank(0));
}

// dy for each element that went into a sum.
Term SpreadOver(GradientNode& d, const Term& dy, const std::vector<int64_t>& axes) {
  return Expanded(ReshapedTo(dy, KeptShape(d.n.Shape(0), axes)), d.n.Shape(0));
}

absl::Status OfReduceSum(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxesOf(d.n));
  d.Give(0, SpreadOver(d, d.Gradient(), axes));
  return absl::OkStatus();
}

absl::Status OfReduceMean(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxesOf(d.n));
  const auto count = static_cast<double>(CountOver(d.n.Shape(0), axes));
  d.Give(0, SpreadOver(d, 1 / count * d.Gradient(), axes));
  return absl::OkStatus();
}

absl::Status OfReduceSumSquare(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxesOf(d.n));
  d.Give(0, SpreadOver(d, 2 * d.Gradient(), axes) * d.In(0));
  return absl::OkStatus();
}

// The largest or smallest of the elements along axes.
absl::Status OfReducedExtreme(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxesOf(d.n));
  const Term y = SpreadOver(d, d.Out(), axes);
  const Term is_extreme = ConvertedTo(IsEqual(d.In(0), y), y.type());
  d.Give(0, is_extreme * SpreadOver(d, d.Gradient(), axes) / SummedOver(is_extreme, axes));
  return absl::OkStatus();
}

absl::Status OfGlobalAveragePool(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  const std::vector<int64_t> axes = AxesFrom(2, d.n.Shape(0).size());
  d.Give(0, SpreadOver(d, 1 / static_cast<double>(CountOver(d.n.Shape(0), axes)) * d.Gradient(), axes));
  return absl::OkStatus();
}

absl::Status OfTranspose(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  const auto rank = static_cast<size_t>(d.n.Rank(0));
  std::vector<int64_t> reversed = AxesFrom(0, rank);
  std::ranges::reverse(reversed);
  const std::vector<int64_t> permutation = d.n.Ints("perm", reversed);
  std::vector<int64_t> inverse(rank);
  for (size_t i = 0; i < rank; ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  d.Give(0, Permuted(d.Gradient(), inverse));
  return absl::OkStatus();
}

absl::Status OfConcat(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, d.n.Axis(d.n.Int("axis", 1), d.n.Rank(0)));
  std::vector<int64_t> parts;
  for (size_t i = 0; i < d.n.num_inputs(); ++i) parts.push_back(d.n.Shape(i)[axis]);
  const std::vector<Term> split = d.writer().AddMany("Split", {d.Gradient(), d.writer().Ints(parts)},
                                                     parts.size(), {{"axis", IntAttribute(axis)}});
  for (size_t i = 0; i < parts.size(); ++i) d.Give(i, split[i]);
  return absl::OkStatus();
}

absl::Status OfSplit(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, d.n.Axis(d.n.Int("axis", 0), d.n.Rank(0)));
  std::vector<Term> parts;
  for (size_t i = 0; i < d.num_outputs(); ++i) {
    if (d.n.node().outputs[i].empty()) return d.n.NotSupported("an output that is left out");
    parts.push_back(d.Gradient(i));
  }
  d.Give(0, d.writer().Add("Concat", parts, {{"axis", IntAttribute(axis)}}));
  return absl::OkStatus();
}

// The axes that the rows of a softmax reach over.
absl::StatusOr<std::vector<int64_t>> SoftmaxAxes(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const bool is_flattened = n.opset() < 13;
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", is_flattened ? 1 : -1), n.Rank(0)));
  return is_flattened ? AxesFrom(axis, n.Shape(0).size()) : std::vector<int64_t>{axis};
}

absl::Status OfSoftmax(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SoftmaxAxes(d.n));
  const Term dy = d.Gradient(), y = d.Out();
  d.Give(0, y * (dy - SummedOver(dy * y, axes)));
  return absl::OkStatus();
}

absl::Status OfLogSoftmax(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SoftmaxAxes(d.n));
  const Term dy = d.Gradient();
  d.Give(0, dy - ExpOf(d.Out()) * SummedOver(dy, axes));
  return absl::OkStatus();
}

// Sorted by name. A gradient that is given is summed over the axes that were broadcast.
const std::map<std::string, GradientRule>& GradientRules() {
  static const auto* const rules = new std::map<std::string, GradientRule>{
      {"Abs", OfOne<OfAbs>},
      {"Add", OfAdd},
      {"AveragePool", GradientOfAveragePool},
      {"BatchNormalization", GradientOfBatchNormalization},
      {"Cast", OfOne<OfCast>},
      {"Ceil", NoGradient},
      {"Clip", OfClip},
      {"Concat", OfConcat},
      {"Conv", GradientOfConv},
      {"Cos", OfOne<OfCos>},
      {"Div", OfDiv},
      {"Dropout", OfOne<OfMove>},
      {"Elu", OfElu},
      {"Erf", OfOne<OfErf>},
      {"Exp", OfOne<OfExp>},
      {"Expand", OfOne<OfMove>},
      {"Flatten", OfOne<OfReshape>},
      {"Floor", NoGradient},
      {"Gather", GradientOfGather},
      {"Gemm", GradientOfGemm},
      {"GlobalAveragePool", OfGlobalAveragePool},
      {"Identity", OfOne<OfMove>},
      {"LayerNormalization", GradientOfLayerNormalization},
      {"LeakyRelu", OfLeakyRelu},
      {"Log", OfOne<OfLog>},
      {"LogSoftmax", OfLogSoftmax},
      {"MatMul", GradientOfMatMul},
      {"Max", OfExtreme},
      {"MaxPool", GradientOfMaxPool},
      {"Mean", OfMean},
      {"Min", OfExtreme},
      {"Mul", OfMul},
      {"Neg", OfOne<OfNeg>},
      {"NegativeLogLikelihoodLoss", GradientOfLoss},
      {"Pow", OfPow},
      {"Reciprocal", OfOne<OfReciprocal>},
      {"ReduceMax", OfReducedExtreme},
      {"ReduceMean", OfReduceMean},
      {"ReduceMin", OfReducedExtreme},
      {"ReduceSum", OfReduceSum},
      {"ReduceSumSquare", OfReduceSumSquare},
      {"Relu", OfOne<OfRelu>},
      {"Reshape", OfOne<OfReshape>},
      {"Round", NoGradient},
      {"Sigmoid", OfOne<OfSigmoid>},
      {"Sign", NoGradient},
      {"Sin", OfOne<OfSin>},
      {"Slice", GradientOfSlice},
      {"Softmax", OfSoftmax},
      {"SoftmaxCrossEntropyLoss", GradientOfLoss},
      {"Softplus", OfOne<OfSoftplus>},
      {"Split", OfSplit},
      {"Sqrt", OfOne<OfSqrt>},
      {"Squeeze", OfOne<OfReshape>},
      {"Sub", OfSub},
      {"Sum", OfSum},
      {"Tanh", OfOne<OfTanh>},
      {"Transpose", OfTranspose},
      {"Unsqueeze", OfOne<OfReshape>},
      {"Where", OfWhere},
  };
  return *rules;
}

}  // namespace

GradientRule FindGradientRule(const std::string& op) {
  const auto at = GradientRules().find(op);
  return at == GradientRules().end() ? nullptr : at->second;
}

}  // namespace mycc::onnx
