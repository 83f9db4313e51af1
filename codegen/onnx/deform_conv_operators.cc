// Deformable convolutions: the image is sampled at the places of every tap, then the samples are multiplied
// with the weights in one sum of products.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/sampling.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

constexpr size_t kDeformBias = 3, kDeformMask = 4;  // inputs; before them x, w and the offsets

struct DeformConv {
  Buffer x, w, offset, mask;
  int64_t group = 1, offset_group = 1, taps = 1;
  Windows windows;
  size_t rank() const { return windows.rank(); }
};

// The number of a tap, counted in row-major order. `taps` begins with those of the first spatial axis.
Expr TapNumber(const DeformConv& conv, const Expr* taps) {
  Expr number = taps[0];
  for (size_t i = 1; i < conv.rank(); ++i) number = number * conv.windows.kernel[i] + taps[i];
  return number;
}

// The places of each tap: [n, offset group, taps..., windows...].
Places TapPlaces(GraphBuilder& g, const DeformConv& conv) {
  std::vector<int64_t> shape = {conv.x->shape[0], conv.offset_group};
  shape.insert(shape.end(), conv.windows.kernel.begin(), conv.windows.kernel.end());
  shape.insert(shape.end(), conv.windows.out.begin(), conv.windows.out.end());
  const DType dtype = SumType(conv.x->dtype);
  const size_t rank = conv.rank();
  Places places;
  for (size_t i = 0; i < rank; ++i) {
    places.push_back(g.Map(shape, [&](const Axes& a) {
      const Expr channel =
          (a[1] * conv.taps + TapNumber(conv, &a[2])) * static_cast<int64_t>(rank) + static_cast<int64_t>(i);
      Axes at = {a[0], channel};
      at.insert(at.end(), a.begin() + 2 + static_cast<int64_t>(rank), a.end());
      const Expr place = conv.windows.Place(i, a[2 + rank + i], a[2 + i]) - conv.windows.before[i];
      return MakeCast(dtype, place) + MakeCast(dtype, Load(conv.offset, std::move(at)));
    }));
  }
  return places;
}

// The samples, with the mask: [n, c, taps..., windows...].
Buffer SamplesOf(GraphBuilder& g, const DeformConv& conv) {
  const Places places = TapPlaces(g, conv);
  const std::vector<Buffer> floors = FloorsOf(g, places);
  std::vector<int64_t> shape = places[0]->shape;
  shape[1] = conv.x->shape[1];
  const int64_t channels = std::max<int64_t>(conv.x->shape[1] / conv.offset_group, 1);
  const size_t rank = conv.rank();
  return g.Map(shape, [&](const Axes& a) {
    Axes at = a;
    at[1] = FloorDiv(a[1], channels);
    Expr value =
        Interpolated(LoadEach(places, at), LoadEachIndex(floors, at), [&](const std::vector<Expr>& index) {
          return LoadOrZero(conv.x, {a[0], a[1]}, index);
        });
    if (conv.mask != nullptr) {
      Axes at_mask = {a[0], at[1] * conv.taps + TapNumber(conv, &a[2])};
      at_mask.insert(at_mask.end(), a.begin() + 2 + static_cast<int64_t>(rank), a.end());
      value = value * MakeCast(value->dtype, Load(conv.mask, std::move(at_mask)));
    }
    return value;
  });
}

Buffer SumsOfSamples(GraphBuilder& g, const DeformConv& conv, const Buffer& samples) {
  std::vector<int64_t> shape = {conv.x->shape[0], conv.w->shape[0]};
  shape.insert(shape.end(), conv.windows.out.begin(), conv.windows.out.end());
  const std::vector<int64_t> reduced(conv.w->shape.begin() + 1, conv.w->shape.end());
  const int64_t channels = conv.w->shape[1];
  const int64_t group_size = std::max<int64_t>(conv.w->shape[0] / conv.group, 1);
  return g.Reduce(ReduceOp::kSum, shape, reduced, [&](const Axes& a, const Axes& r) {
    Axes at_w = {a[1]};
    at_w.insert(at_w.end(), r.begin(), r.end());
    Axes at = {a[0], conv.group == 1 ? r[0] : FloorDiv(a[1], group_size) * channels + r[0]};
    at.insert(at.end(), r.begin() + 1, r.end());
    at.insert(at.end(), a.begin() + 2, a.end());
    return Load(samples, std::move(at)) * MakeCast(samples->dtype, Load(conv.w, std::move(at_w)));
  });
}

absl::Status ExpectShapes(const NodeImport& n, const DeformConv& conv) {
  std::vector<int64_t> offsets = {conv.x->shape[0],
                                  conv.offset_group * conv.taps * static_cast<int64_t>(conv.rank())};
  std::vector<int64_t> masks = {conv.x->shape[0], conv.offset_group * conv.taps};
  offsets.insert(offsets.end(), conv.windows.out.begin(), conv.windows.out.end());
  masks.insert(masks.end(), conv.windows.out.begin(), conv.windows.out.end());
  if (conv.offset->shape != offsets)
    return n.Refuse(
        absl::StrCat("the offsets are ", TypeText(conv.offset), "; expected ", ShapeText(offsets)));
  if (conv.mask != nullptr && conv.mask->shape != masks)
    return n.Refuse(absl::StrCat("the mask is ", TypeText(conv.mask), "; expected ", ShapeText(masks)));
  return absl::OkStatus();
}

}  // namespace

absl::Status ImportDeformConv(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 2, kTakesFloats));
  for (size_t i : {kDeformBias, kDeformMask}) {
    if (n.Has(i)) MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
  }
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 5));
  DeformConv conv{n.In(0), n.In(1), n.In(2), n.Has(kDeformMask) ? n.In(kDeformMask) : Buffer()};
  conv.group = n.Int("group", 1);
  conv.offset_group = n.Int("offset_group", 1);
  const bool fits = n.Rank(1) == n.Rank(0) && conv.group > 0 && conv.group <= kMostWindowExtent &&
                    conv.w->shape[0] % conv.group == 0 && conv.x->shape[1] % conv.group == 0 &&
                    conv.x->shape[1] / conv.group == conv.w->shape[1] && conv.offset_group > 0 &&
                    conv.offset_group <= kMostWindowExtent && conv.x->shape[1] % conv.offset_group == 0;
  if (!fits) {
    return n.Refuse(absl::StrCat("convolves ", TypeText(conv.x), " with ", TypeText(conv.w), " in ",
                                 conv.group, " groups with ", conv.offset_group,
                                 " groups of offsets; expected channels that fit"));
  }
  MYCC_ASSIGN_OR_RETURN(const auto kernel, KernelOf(n, 1));
  MYCC_ASSIGN_OR_RETURN(conv.windows, WindowsOf(n, conv.x->shape, kernel));
  for (int64_t extent : kernel) conv.taps *= extent;
  MYCC_RETURN_IF_ERROR(ExpectShapes(n, conv));
  if (conv.x->num_elements() == 0) return n.NotSupported("an image without elements");
  std::vector<int64_t> shape = {conv.x->shape[0], conv.x->shape[1], conv.taps, conv.w->shape[0]};
  shape.insert(shape.end(), conv.windows.out.begin(), conv.windows.out.end());
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("samples ", problem));
  GraphBuilder& g = n.g();
  const Buffer sums = SumsOfSamples(g, conv, SamplesOf(g, conv));
  MYCC_ASSIGN_OR_RETURN(const Buffer result, WithBias(n, sums, kDeformBias, conv.x->dtype));
  n.Set(0, result);
  return absl::OkStatus();
}

}  // namespace mycc::onnx
