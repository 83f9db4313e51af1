// Convolutions of floats: padding is a stage of its own, and the sum a plain one of products, which the
// compiler knows as a contraction.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/windows.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

absl::Status Conv(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, n.Has(2) ? 2 : 1, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 9));
  const Buffer x = n.In(0), w = n.In(1);
  MYCC_ASSIGN_OR_RETURN(const auto kernel, KernelOf(n, 1));
  const int64_t group = n.Int("group", 1);
  const bool fits = n.Rank(0) == n.Rank(1) && group > 0 && group <= kMostWindowExtent &&
                    w->shape[0] % group == 0 && x->shape[1] % group == 0 &&
                    x->shape[1] / group == w->shape[1];
  if (!fits) {
    return n.Refuse(absl::StrCat("convolves ", TypeText(x), " with ", TypeText(w), " in ", group,
                                 " groups; expected channels that fit"));
  }
  MYCC_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(n, x->shape, kernel));
  const Buffer padded = PaddedImage(n.g(), x, windows, FloatConst(0, x->dtype));
  MYCC_ASSIGN_OR_RETURN(const Buffer sums, ConvolutionSums(n, padded, w, group, windows));
  MYCC_ASSIGN_OR_RETURN(const Buffer result, WithBias(n, sums, 2, x->dtype));
  n.Set(0, result);
  return absl::OkStatus();
}

constexpr Operator kConvTable[] = {
    {"Conv", Conv},
    {"ConvTranspose", ImportConvTranspose},
    {"DeformConv", ImportDeformConv, 19},
};

}  // namespace

absl::StatusOr<std::vector<int64_t>> KernelOf(const NodeImport& n, size_t weights) {
  MYCC_RETURN_IF_ERROR(n.ExpectRank(weights, 3, 9));
  const std::vector<int64_t> kernel(n.Shape(weights).begin() + 2, n.Shape(weights).end());
  if (const auto declared = n.Ints("kernel_shape", kernel); declared != kernel) {
    return n.Refuse(absl::StrCat("kernel_shape is ", ShapeText(declared), "; expected ", ShapeText(kernel),
                                 " as the weights have"));
  }
  return kernel;
}

absl::StatusOr<Buffer> ConvolutionSums(NodeImport& n, const Buffer& padded, const Buffer& w, int64_t group,
                                       const Windows& windows) {
  std::vector<int64_t> shape = {padded->shape[0], w->shape[0]};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("convolves to ", problem));
  const std::vector<int64_t> reduced(w->shape.begin() + 1, w->shape.end());
  const int64_t channels = w->shape[1];
  const int64_t group_size = std::max<int64_t>(w->shape[0] / group, 1);
  const DType dtype = SumType(padded->dtype);
  return n.g().Reduce(ReduceOp::kSum, shape, reduced, [&](const Axes& a, const Axes& r) {
    Axes at_x = {a[0], group == 1 ? r[0] : FloorDiv(a[1], group_size) * channels + r[0]}, at_w = {a[1]};
    for (size_t i = 0; i < windows.rank(); ++i) at_x.push_back(windows.Place(i, a[i + 2], r[i + 1]));
    at_w.insert(at_w.end(), r.begin(), r.end());
    return MakeCast(dtype, Load(padded, at_x)) * MakeCast(dtype, Load(w, at_w));
  });
}

absl::StatusOr<Buffer> WithBias(NodeImport& n, const Buffer& sums, size_t bias, DType dtype) {
  if (!n.Has(bias)) return n.g().Cast(sums, dtype);
  const Buffer b = n.In(bias);
  if (b->shape != std::vector<int64_t>{sums->shape[1]}) {
    return n.Refuse(absl::StrCat("the bias is ", TypeText(b), "; expected one number for each of ",
                                 sums->shape[1], " channels"));
  }
  return n.g().Map(sums->shape, [&](const Axes& axes) {
    return MakeCast(dtype, Load(sums, axes) + MakeCast(sums->dtype, Load(b, {axes[1]})));
  });
}

std::span<const Operator> ConvOperators() { return kConvTable; }

}  // namespace mycc::onnx
