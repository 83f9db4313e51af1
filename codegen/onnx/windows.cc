#include "codegen/onnx/windows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// Sets the padding and the number of windows along one axis.
absl::Status SetAxis(const NodeImport& n, size_t i, const std::string& auto_pad, bool is_ceiled, Windows* w) {
  const int64_t in = w->image[i], stride = w->strides[i], reach = w->Reach(i);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    w->out[i] = (in + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((w->out[i] - 1) * stride + reach - in, 0);
    w->before[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w->after[i] = total - w->before[i];
    return absl::OkStatus();
  }
  if (auto_pad == "VALID") w->before[i] = w->after[i] = 0;
  const int64_t padded = w->before[i] + in + w->after[i];
  // Rounded up, there is one window where it begins in the image, although it ends behind all padding.
  if (is_ceiled && padded < reach && reach - padded < stride) {
    w->out[i] = 1;
    return absl::OkStatus();
  }
  if (padded < reach) {
    return n.Refuse(absl::StrCat("the kernel reaches over ", reach, " elements of spatial axis ", i,
                                 ", which has ", padded, " with its padding; expected as many"));
  }
  w->out[i] = (padded - reach + (is_ceiled ? stride - 1 : 0)) / stride + 1;
  // The last window begins in the image or the padding before it.
  if (is_ceiled && w->out[i] > 1 && (w->out[i] - 1) * stride >= in + w->before[i]) --w->out[i];
  return absl::OkStatus();
}

}  // namespace

Expr Windows::Place(size_t i, const Expr& window, const Expr& tap) const {
  return window * strides[i] + tap * dilations[i];
}

bool Windows::ReadsPadding() const {
  for (size_t i = 0; i < rank(); ++i) {
    if (before[i] > 0 || Padded(i) > image[i]) return true;
  }
  return false;
}

absl::StatusOr<std::vector<int64_t>> WindowInts(const NodeImport& n, const std::string& name, size_t count,
                                                int64_t least) {
  const std::vector<int64_t> values = n.Ints(name, std::vector<int64_t>(count, least));
  const bool fits = values.size() == count && std::ranges::all_of(values, [&](int64_t value) {
                      return value >= least && value <= kMostWindowExtent;
                    });
  if (fits) return values;
  return n.Refuse(absl::StrCat(name, " is ", ShapeText(values), "; expected ", count, " numbers from ", least,
                               " to ", kMostWindowExtent));
}

absl::StatusOr<std::string> AutoPad(const NodeImport& n) {
  const std::string mode = n.String("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER" || mode == "VALID" || mode == "NOTSET") return mode;
  if (mode.empty()) return "NOTSET";
  return n.Refuse(absl::StrCat("auto_pad is `", mode, "`; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

absl::StatusOr<Windows> WindowsOf(const NodeImport& n, const std::vector<int64_t>& image,
                                  std::vector<int64_t> kernel) {
  const size_t rank = kernel.size();
  if (image.size() != rank + 2)
    return n.Refuse(absl::StrCat("a kernel ", ShapeText(kernel), " over ", ShapeText(image),
                                 "; expected rank ", rank + 2));
  Windows w;
  w.kernel = std::move(kernel);
  w.image.assign(image.begin() + 2, image.end());
  for (size_t i = 0; i < rank; ++i) {
    if (w.kernel[i] < 1 || w.kernel[i] > kMostWindowExtent)
      return n.Refuse(absl::StrCat("the kernel is ", ShapeText(w.kernel), "; expected extents above 0"));
    if (w.image[i] > kMostWindowExtent) return n.NotSupported(absl::StrCat("an extent of ", w.image[i]));
  }
  MYCC_ASSIGN_OR_RETURN(w.strides, WindowInts(n, "strides", rank, 1));
  MYCC_ASSIGN_OR_RETURN(w.dilations, WindowInts(n, "dilations", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, WindowInts(n, "pads", 2 * rank, 0));
  MYCC_ASSIGN_OR_RETURN(const std::string auto_pad, AutoPad(n));
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  w.after.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  w.out.resize(rank);
  for (size_t i = 0; i < rank; ++i)
    MYCC_RETURN_IF_ERROR(SetAxis(n, i, auto_pad, n.Int("ceil_mode", 0) != 0, &w));
  std::vector<int64_t> padded = {image[0], image[1]};
  for (size_t i = 0; i < rank; ++i) padded.push_back(std::max<int64_t>(w.Padded(i), 0));
  if (const std::string problem = ShapeProblem(padded); !problem.empty())
    return n.Refuse(absl::StrCat("the padded image is ", problem));
  return w;
}

Expr LoadPadded(const Buffer& image, const std::vector<int64_t>& before, const Axes& at, const Expr& outside,
                const std::vector<int64_t>& padded) {
  if (image->num_elements() == 0) return outside;
  Expr is_inside = BoolConst(true);
  Axes from = at;
  for (size_t i = 0; i < before.size(); ++i) {
    const int64_t in = image->shape[i + 2];
    Expr& index = from[i + 2];
    if (before[i] > 0) is_inside = MakeBinary(Op::kAnd, is_inside, AtMost(IntConst(before[i]), index));
    if (before[i] + in < padded[i])
      is_inside = MakeBinary(Op::kAnd, is_inside, LessThan(index, IntConst(before[i] + in)));
    index = index - before[i];
  }
  return MakeSelect(is_inside, Load(image, std::move(from)), outside);
}

Buffer PaddedImage(GraphBuilder& g, const Buffer& image, const Windows& windows, const Expr& outside) {
  if (!windows.ReadsPadding()) return image;
  std::vector<int64_t> shape = {image->shape[0], image->shape[1]}, padded;
  for (size_t i = 0; i < windows.rank(); ++i) padded.push_back(std::max<int64_t>(windows.Padded(i), 0));
  shape.insert(shape.end(), padded.begin(), padded.end());
  return g.Map(shape,
               [&](const Axes& axes) { return LoadPadded(image, windows.before, axes, outside, padded); });
}

}  // namespace mycc::onnx
