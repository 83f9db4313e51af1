// The rules of Gradient for normalizations, losses of classifications, and what takes elements by their
// places.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/gradient_rules.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

absl::Status ExpectFirstOutputAlone(GradientNode& d) {
  for (size_t i = 1; i < d.num_outputs(); ++i) {
    if (d.Reaches(i)) return d.n.NotSupported(absl::StrCat("the gradient of output ", i));
  }
  return absl::OkStatus();
}

Term AverageOver(const Term& x, const std::vector<int64_t>& axes) {
  return 1 / static_cast<double>(CountOver(x.shape(), axes)) * SummedOver(x, axes);
}

// (x - mean) * factor, where the factor is 1 / sqrt(variance + epsilon).
struct Normalized {
  Term factor, value;
};

Normalized NormalizedBy(const Term& x, const Term& mean, const Term& variance, double epsilon) {
  const Term factor = UnaryTerm("Reciprocal", UnaryTerm("Sqrt", epsilon + variance));
  return {factor, (x - mean) * factor};
}

Normalized NormalizedOver(const Term& x, const std::vector<int64_t>& axes, double epsilon) {
  const Term mean = AverageOver(x, axes);
  const Term difference = x - mean;
  return NormalizedBy(x, mean, AverageOver(difference * difference, axes), epsilon);
}

// The gradient of x, from that of the normalized x: mean and variance depend on x too.
Term ThroughStatistics(const Normalized& normalized, const Term& dy, const std::vector<int64_t>& axes) {
  const Term shared = AverageOver(dy, axes) + normalized.value * AverageOver(dy * normalized.value, axes);
  return normalized.factor * (dy - shared);
}

// Adds rows of dy to the rows of zeros that the indices name, along the first axis.
Term AddedToRows(const Term& dy, const Term& indices, int64_t rows) {
  std::vector<int64_t> shape = dy.shape();
  if (shape.empty()) return dy;
  shape[0] = rows;
  const Term zeros = dy.writer->Filled(0, shape, dy);
  OnnxAttribute add;
  add.type = 3;
  add.s = "add";
  return dy.writer->Add("ScatterND", {zeros, indices, dy}, {{"reduction", add}});
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  return inverse;
}

// 1 at the label of each element, along a new axis 1, in the type of `like`.
Term AtLabels(const Term& labels, int64_t classes, const Term& like) {
  NodeWriter& writer = *labels.writer;
  const Term values =
      writer.Add("Concat", {ReshapedTo(writer.Number(0, like), {1}), ReshapedTo(writer.Number(1, like), {1})},
                 {{"axis", IntAttribute(0)}});
  return writer.Add("OneHot", {labels, writer.Ints({classes}), values}, {{"axis", IntAttribute(1)}});
}

}  // namespace

// Inputs: x, scale, bias, mean, variance, the last four by channel.
absl::Status GradientOfBatchNormalization(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(5));
  MYCC_RETURN_IF_ERROR(ExpectFirstOutputAlone(d));
  MYCC_RETURN_IF_ERROR(d.n.ExpectRank(0, 2, 16));
  if (d.n.opset() < 9) return d.n.NotSupported("the gradient of a batch normalization before opset 9");
  bool is_training = d.n.Int("training_mode", 0) != 0;
  for (size_t i = 1; d.n.opset() < 14 && i < d.num_outputs(); ++i) is_training |= d.n.Wants(i);
  std::vector<int64_t> by_channel(d.n.Shape(0).size() - 1, 1);
  by_channel[0] = d.n.Shape(0)[1];
  const auto parameter = [&](size_t i) { return ReshapedTo(d.In(i), by_channel); };
  const auto give = [&](size_t i, const Term& gradient) {
    if (d.Needs(i)) d.Give(i, ReshapedTo(SummedTo(gradient, by_channel), d.n.Shape(i)));
  };
  std::vector<int64_t> axes = AxesFrom(2, d.n.Shape(0).size());
  axes.insert(axes.begin(), 0);
  const double epsilon = d.n.Float("epsilon", 1e-5);
  const Normalized normalized = is_training ? NormalizedOver(d.In(0), axes, epsilon)
                                            : NormalizedBy(d.In(0), parameter(3), parameter(4), epsilon);
  const Term scaled = d.Gradient() * parameter(1);
  give(1, d.Gradient() * normalized.value);
  give(2, d.Gradient());
  if (is_training) {
    if (d.Needs(0)) d.Give(0, ThroughStatistics(normalized, scaled, axes));
    return absl::OkStatus();
  }
  d.Give(0, scaled * normalized.factor);
  give(3, -(scaled * normalized.factor));
  give(4, -0.5 * (scaled * (normalized.value * (normalized.factor * normalized.factor))));
  return absl::OkStatus();
}

absl::Status GradientOfLayerNormalization(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectFirstOutputAlone(d));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, d.n.Axis(d.n.Int("axis", -1), d.n.Rank(0)));
  const std::vector<int64_t> axes = AxesFrom(axis, d.n.Shape(0).size());
  const Normalized normalized = NormalizedOver(d.In(0), axes, d.n.Float("epsilon", 1e-5));
  if (d.Needs(0)) d.Give(0, ThroughStatistics(normalized, d.Gradient() * d.In(1), axes));
  if (d.Needs(1)) d.Give(1, d.Gradient() * normalized.value);
  d.Give(2, d.Gradient());
  return absl::OkStatus();
}

// Inputs: scores[n, classes, ...], or their logarithms, labels[n, ...], weights[classes]. Each label has a
// weight, which is zero for the ignored one.
absl::Status GradientOfLoss(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectFirstOutputAlone(d));
  if (d.Needs(2)) return d.n.NotSupported("the gradient of the weights of classes");
  NodeWriter& writer = d.writer();
  const Term x = d.In(0);
  const int64_t classes = d.n.Shape(0)[1];
  const Term given = ConvertedTo(d.In(1), kInt64);
  const auto number = [&](int64_t value) { return ReshapedTo(writer.Ints({value}), {}); };
  const Term labels = writer.Add("Min", {writer.Add("Max", {given, number(0)}), number(classes - 1)});
  Term weights = d.n.Has(2) ? writer.Add("Gather", {d.In(2), labels}) : writer.Filled(1, labels.shape(), x);
  if (d.n.HasAttribute("ignore_index")) {
    const Term is_ignored = IsEqual(given, number(d.n.Int("ignore_index", 0)));
    weights = ChoiceOf(is_ignored, writer.Number(0, x), weights);
  }
  Term factor = d.Gradient() * weights;
  if (d.n.String("reduction", "mean") == "mean")
    factor = factor / ReshapedTo(SummedOver(weights, AxesFrom(0, weights.shape().size())), {});
  std::vector<int64_t> by_label = labels.shape();
  if (by_label.empty()) return writer.status();
  by_label.insert(by_label.begin() + 1, 1);
  const Term at_labels = AtLabels(labels, classes, x);
  const bool are_scores = d.n.op() == "SoftmaxCrossEntropyLoss";
  const Term slope =
      are_scores ? writer.Add("Softmax", {x}, {{"axis", IntAttribute(1)}}) - at_labels : -at_labels;
  d.Give(0, ReshapedTo(factor, by_label) * slope);
  return absl::OkStatus();
}

// The rows are those along the axis; each comes back to the one that it was taken from.
absl::Status GradientOfGather(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  if (!d.Needs(0)) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, d.n.Axis(d.n.Int("axis", 0), d.n.Rank(0)));
  const int64_t rows = d.n.Shape(0)[axis];
  const Term given = ConvertedTo(d.In(1), kInt64);
  const Term indices =
      ChoiceOf(IsGreater(d.writer().Ints({0}), given), d.writer().Ints({rows}) + given, given);
  // The axes of the indices in dy, which go to the front, and the axis in the result.
  std::vector<int64_t> to_front(d.Out().shape().size()), axis_to_front(d.n.Shape(0).size());
  std::iota(to_front.begin(), to_front.end(), 0);
  std::iota(axis_to_front.begin(), axis_to_front.end(), 0);
  std::rotate(to_front.begin(), to_front.begin() + axis, to_front.begin() + axis + d.n.Rank(1));
  std::rotate(axis_to_front.begin(), axis_to_front.begin() + axis, axis_to_front.begin() + axis + 1);
  const int64_t count = d.n.In(1)->num_elements();
  std::vector<int64_t> shape = {count};
  for (size_t i = 1; i < axis_to_front.size(); ++i) shape.push_back(d.n.Shape(0)[axis_to_front[i]]);
  const Term dy = ReshapedTo(Permuted(d.Gradient(), to_front), shape);
  const Term sums = AddedToRows(dy, ReshapedTo(indices, {count, 1}), rows);
  d.Give(0, Permuted(sums, Inverse(axis_to_front)));
  return absl::OkStatus();
}

// MaxPool tells the places of the elements that it takes, in the whole tensor.
absl::Status GradientOfMaxPool(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  OnnxAttributes attributes = d.n.node().attributes;
  attributes.erase("storage_order");
  const std::vector<Term> pooled = d.writer().AddMany("MaxPool", {d.In(0)}, 2, std::move(attributes));
  const int64_t count = d.Out().shape().empty() ? 0 : ElementsOf(d.Out().shape());
  const Term sums = AddedToRows(ReshapedTo(d.Gradient(), {count}), ReshapedTo(pooled[1], {count, 1}),
                                ElementsOf(d.n.Shape(0)));
  d.Give(0, ReshapedTo(sums, d.n.Shape(0)));
  return absl::OkStatus();
}

// Zeros around dy, where each axis is cut in steps of 1.
absl::Status GradientOfSlice(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  const auto rank = static_cast<size_t>(d.n.Rank(0));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, d.n.IntsOrInput("starts", 1));
  MYCC_ASSIGN_OR_RETURN(std::vector<int64_t> axes, d.n.IntsOrInput("axes", 3, AxesFrom(0, starts.size())));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                        d.n.IntsOrInput("steps", 4, std::vector<int64_t>(starts.size(), 1)));
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] != 1)
      return d.n.NotSupported(absl::StrCat("the gradient of a slice in steps of ", steps[i]));
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, d.n.Axis(axes[i], d.n.Rank(0)));
    const int64_t extent = d.n.Shape(0)[axis];
    pads[axis] = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + extent : starts[i], 0, extent);
    pads[axis + rank] = extent - pads[axis] - d.Out().shape()[axis];
  }
  d.Give(0, d.writer().Add("Pad", {d.Gradient(), d.writer().Ints(pads)}));
  return absl::OkStatus();
}

}  // namespace mycc::onnx
