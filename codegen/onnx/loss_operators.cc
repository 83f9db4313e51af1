// Losses of classifications: the negative logarithms of the labels' probabilities, weighted by class.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"
#include "codegen/onnx/softmax.h"

namespace mycc::onnx {
namespace {

enum LossInput : size_t { kScores, kLabels, kClassWeights };

absl::Status CheckLoss(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, kScores, kTakesFloats));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, kLabels, kTakesIntegers));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(kScores, 2, 16));
  std::vector<int64_t> expected = n.Shape(kScores);
  const int64_t classes = expected[1];
  expected.erase(expected.begin() + 1);
  if (n.Shape(kLabels) != expected || classes < 1) {
    return n.Refuse(absl::StrCat("labels ", TypeText(n.In(kLabels)), " for scores ", TypeText(n.In(kScores)),
                                 "; expected ", ShapeText(expected), " and at least one class"));
  }
  if (n.Has(kClassWeights) &&
      (n.Shape(kClassWeights) != std::vector<int64_t>{classes} || n.Type(kClassWeights) != n.Type(kScores))) {
    return n.Refuse(absl::StrCat("the weights are ", TypeText(n.In(kClassWeights)), "; expected ", classes,
                                 " of the scores' type"));
  }
  return absl::OkStatus();
}

// Elements of the labels' shape.
struct LabelTerms {
  Buffer losses;   // weighted
  Buffer weights;  // null: all 1
};

// Labels outside of the classes count as the nearest class, and the ignored label counts nothing.
LabelTerms TermsOfLabels(NodeImport& n, const Buffer& log_probabilities) {
  GraphBuilder& g = n.g();
  const Buffer labels = n.In(kLabels);
  const DType dtype = log_probabilities->dtype;
  const std::vector<int64_t>& shape = labels->shape;
  const Expr last_class = IntConst(n.Shape(kScores)[1] - 1), zero = FloatConst(0, dtype);
  const auto label_at = [&](const Axes& at) { return MakeCast(DType::kI64, Load(labels, at)); };
  const auto class_at = [&](const Axes& at) { return ClampTo(label_at(at), IntConst(0), last_class); };
  LabelTerms terms;
  if (n.Has(kClassWeights) || n.HasAttribute("ignore_index")) {
    const Expr ignored = IntConst(n.Int("ignore_index", 0));
    terms.weights = g.Map(shape, [&](const Axes& at) {
      const Expr weight = n.Has(kClassWeights) ? MakeCast(dtype, Load(n.In(kClassWeights), {class_at(at)}))
                                               : FloatConst(1, dtype);
      if (!n.HasAttribute("ignore_index")) return weight;
      return MakeSelect(MakeBinary(Op::kEq, label_at(at), ignored), zero, weight);
    });
  }
  terms.losses = g.Map(shape, [&](const Axes& at) {
    Axes index = at;
    index.insert(index.begin() + 1, class_at(at));
    const Expr loss = Negative(Load(log_probabilities, index));
    if (terms.weights == nullptr) return loss;
    const Expr weight = Load(terms.weights, at);
    return MakeSelect(MakeBinary(Op::kEq, weight, zero), zero, loss * weight);
  });
  return terms;
}

// The attribute `reduction`: none, sum or mean. The mean is weighted.
absl::StatusOr<Buffer> ReducedLoss(NodeImport& n, const LabelTerms& terms) {
  GraphBuilder& g = n.g();
  const std::string reduction = n.String("reduction", "mean");
  if (reduction == "none") return terms.losses;
  if (reduction != "sum" && reduction != "mean")
    return n.Refuse(absl::StrCat("reduction is `", reduction, "`; expected none, sum or mean"));
  const std::vector<int64_t>& shape = terms.losses->shape;
  const auto sum_of = [&](const Buffer& tensor) {
    return ReduceOver(g, ReduceOp::kSum, shape, AxesFrom(0, shape.size()), false,
                      [&](const Axes& at) { return Load(tensor, at); });
  };
  const Buffer sum = sum_of(terms.losses);
  if (reduction == "sum") return sum;
  const DType dtype = sum->dtype;
  const Buffer weight = terms.weights != nullptr ? sum_of(terms.weights)
                                                 : g.Number(dtype, static_cast<double>(ElementsOf(shape)));
  return g.Map({}, [&](const Axes&) { return Quotient(Load(sum, {}), OnlyElement(g, weight)); });
}

absl::Status SetLoss(NodeImport& n, const Buffer& log_probabilities) {
  MYCC_ASSIGN_OR_RETURN(const Buffer loss, ReducedLoss(n, TermsOfLabels(n, log_probabilities)));
  n.Set(0, n.g().Cast(loss, n.Type(kScores)));
  return absl::OkStatus();
}

absl::Status NegativeLogLikelihoodLoss(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(CheckLoss(n));
  return SetLoss(n, n.g().Cast(n.In(kScores), WideTypeOf(n.Type(kScores))));
}

absl::Status SoftmaxCrossEntropyLoss(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(CheckLoss(n));
  const Buffer log_probabilities = LogSoftmaxOver(n.g(), n.In(kScores), {1});
  if (n.Wants(1)) n.Set(1, n.g().Cast(log_probabilities, n.Type(kScores)));
  return SetLoss(n, log_probabilities);
}

constexpr Operator kLossTable[] = {
    {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss, 12},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss, 12},
};

}  // namespace

std::span<const Operator> LossOperators() { return kLossTable; }

}  // namespace mycc::onnx
