// The rules of Gradient for products of matrices, convolutions and averages over windows: the gradients are
// products and convolutions too.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/gradient_rules.h"
#include "codegen/onnx/rows.h"
#include "codegen/onnx/windows.h"

namespace mycc::onnx {
namespace {

// The shape [m, k] that a vector [k] has in a product, or [k, n] as the second operand.
std::vector<int64_t> MatrixShape(std::vector<int64_t> shape, bool is_second) {
  if (shape.size() == 1) shape.insert(is_second ? shape.end() : shape.begin(), 1);
  return shape;
}

// dy in the shape that it has where vectors are matrices.
Term ProductGradient(GradientNode& d) {
  std::vector<int64_t> shape = d.Out().shape();
  if (d.n.Rank(1) == 1) shape.push_back(1);
  if (d.n.Rank(0) == 1) shape.insert(shape.end() - 1, 1);
  return ReshapedTo(d.Gradient(), shape);
}

// A convolution, with its operands as groups: x[n, g * c, image], w[g * m, c, kernel], dy[n, g * m, out].
struct GroupedConv {
  Windows windows;
  int64_t batch, groups, channels, results;  // channels and results of one group

  static absl::StatusOr<GroupedConv> Of(const NodeImport& n) {
    MYCC_RETURN_IF_ERROR(n.Expect(2));
    MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KernelOf(n, 1));
    MYCC_ASSIGN_OR_RETURN(Windows windows, WindowsOf(n, n.Shape(0), kernel));
    const int64_t groups = n.Int("group", 1);
    return GroupedConv{std::move(windows), n.Shape(0)[0], groups, n.Shape(1)[1], n.Shape(1)[0] / groups};
  }
};

// The padding that windows read.
std::vector<int64_t> PadsOf(const Windows& w) {
  std::vector<int64_t> pads = w.before;
  for (size_t i = 0; i < w.rank(); ++i)
    pads.push_back(std::max<int64_t>(w.Padded(i) - w.image[i] - w.before[i], 0));
  return pads;
}

std::vector<int64_t> WithExtents(std::vector<int64_t> first, const std::vector<int64_t>& spatial) {
  first.insert(first.end(), spatial.begin(), spatial.end());
  return first;
}

std::vector<int64_t> WithSpatialAxes(std::vector<int64_t> axes, size_t spatial) {
  for (const int64_t axis : AxesFrom(static_cast<int64_t>(axes.size()), axes.size() + spatial))
    axes.push_back(axis);
  return axes;
}

// Each element of dy goes back to where its window read. Elements that no window reads stay zero.
Term BackToImage(const Term& dy, const Term& weights, const Windows& w, int64_t groups) {
  std::vector<int64_t> pads = PadsOf(w), unread;
  for (size_t i = 0; i < w.rank(); ++i)
    unread.push_back(w.image[i] + pads[i] + pads[i + w.rank()] - w.Padded(i));
  return dy.writer->Add("ConvTranspose", {dy, weights},
                        {{"group", IntAttribute(groups)},
                         {"strides", IntsAttribute(w.strides)},
                         {"dilations", IntsAttribute(w.dilations)},
                         {"pads", IntsAttribute(pads)},
                         {"output_padding", IntsAttribute(unread)}});
}

// The convolution of x with dy, the batch being the axis that is summed over: strides and dilations change
// places. A window more than the kernel has taps may fit; it is cut off.
Term WeightGradient(GradientNode& d, const GroupedConv& conv) {
  const Windows& w = conv.windows;
  const int64_t n = conv.batch, g = conv.groups, c = conv.channels, m = conv.results;
  const auto spatial = w.rank();
  const Term x =
      Permuted(ReshapedTo(d.In(0), WithExtents({n, g, c}, w.image)), WithSpatialAxes({2, 1, 0}, spatial));
  const Term dy =
      Permuted(ReshapedTo(d.Gradient(), WithExtents({n, g, m}, w.out)), WithSpatialAxes({1, 2, 0}, spatial));
  const Term product = d.writer().Add(
      "Conv",
      {ReshapedTo(x, WithExtents({c, g * n}, w.image)), ReshapedTo(dy, WithExtents({g * m, n}, w.out))},
      {{"group", IntAttribute(g)},
       {"strides", IntsAttribute(w.dilations)},
       {"dilations", IntsAttribute(w.strides)},
       {"pads", IntsAttribute(PadsOf(w))}});
  const std::vector<int64_t> axes = AxesFrom(2, spatial + 2);
  const Term taps = d.writer().Add("Slice", {product, d.writer().Ints(std::vector<int64_t>(spatial, 0)),
                                             d.writer().Ints(w.kernel), d.writer().Ints(axes)});
  return Permuted(taps, WithSpatialAxes({1, 0}, spatial));
}

}  // namespace

absl::Status GradientOfMatMul(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  const std::vector<int64_t> a = MatrixShape(d.n.Shape(0), false), b = MatrixShape(d.n.Shape(1), true);
  const Term dy = ProductGradient(d);
  if (d.Needs(0)) {
    const Term all = ProductOf(dy, TransposedMatrix(ReshapedTo(d.In(1), b)));
    d.Give(0, ReshapedTo(SummedTo(all, a), d.n.Shape(0)));
  }
  if (d.Needs(1)) {
    const Term all = ProductOf(TransposedMatrix(ReshapedTo(d.In(0), a)), dy);
    d.Give(1, ReshapedTo(SummedTo(all, b), d.n.Shape(1)));
  }
  return absl::OkStatus();
}

absl::Status GradientOfGemm(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(2));
  const bool a_is_transposed = d.n.Int("transA", 0) != 0, b_is_transposed = d.n.Int("transB", 0) != 0;
  const Term dy = d.n.Float("alpha", 1) * d.Gradient();
  if (d.Needs(0)) {
    const Term b = b_is_transposed ? d.In(1) : TransposedMatrix(d.In(1));
    const Term gradient = ProductOf(dy, b);
    d.Give(0, a_is_transposed ? TransposedMatrix(gradient) : gradient);
  }
  if (d.Needs(1)) {
    const Term a = a_is_transposed ? d.In(0) : TransposedMatrix(d.In(0));
    const Term gradient = ProductOf(a, dy);
    d.Give(1, b_is_transposed ? TransposedMatrix(gradient) : gradient);
  }
  if (d.Needs(2)) d.Give(2, d.n.Float("beta", 1) * d.Gradient());
  return absl::OkStatus();
}

absl::Status GradientOfConv(GradientNode& d) {
  MYCC_ASSIGN_OR_RETURN(const GroupedConv conv, GroupedConv::Of(d.n));
  if (d.Needs(0)) d.Give(0, BackToImage(d.Gradient(), d.In(1), conv.windows, conv.groups));
  if (d.Needs(1)) d.Give(1, WeightGradient(d, conv));
  if (d.Needs(2)) {
    std::vector<int64_t> axes = AxesFrom(2, d.Out().shape().size());
    axes.insert(axes.begin(), 0);
    d.Give(2, ReshapedTo(SummedOver(d.Gradient(), axes), d.n.Shape(2)));
  }
  return absl::OkStatus();
}

// Every channel is an image by itself. The elements of a window share its gradient; those of the padding take
// their shares too with count_include_pad.
absl::Status GradientOfAveragePool(GradientNode& d) {
  MYCC_RETURN_IF_ERROR(d.n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const Windows w, WindowsOf(d.n, d.n.Shape(0), d.n.Ints("kernel_shape")));
  const bool counts_padding = d.n.Int("count_include_pad", 0) != 0;
  if (counts_padding && d.n.Int("ceil_mode", 0) != 0)
    return d.n.NotSupported("the gradient of an average with ceil_mode and count_include_pad");
  const int64_t images = d.n.Shape(0)[0] * d.n.Shape(0)[1];
  const Term dy = ReshapedTo(d.Gradient(), WithExtents({images, 1}, w.out));
  const Term ones = d.writer().Filled(1, WithExtents({1, 1}, w.kernel), dy);
  const Term count =
      counts_padding ? SummedOver(ones, AxesFrom(0, w.rank() + 2))
                     : d.writer().Add("Conv", {d.writer().Filled(1, WithExtents({1, 1}, w.image), dy), ones},
                                      {{"strides", IntsAttribute(w.strides)},
                                       {"dilations", IntsAttribute(w.dilations)},
                                       {"pads", IntsAttribute(PadsOf(w))}});
  d.Give(0, ReshapedTo(BackToImage(dy / count, ones, w, 1), d.n.Shape(0)));
  return absl::OkStatus();
}

}  // namespace mycc::onnx
