// Pooling over regions of interest, whose places are values of the call.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/sampling.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

Expr LargerOf(const Expr& a, const Expr& b) { return MakeBinary(Op::kMax, a, b); }
Expr BothOf(const Expr& a, const Expr& b) { return MakeBinary(Op::kAnd, a, b); }

// Shared by both operators. Axis 0 of the two is the image's rows, and axis 1 its columns.
struct Regions {
  Buffer x, rois;
  int64_t first_column = 0;  // of the coordinates x1, y1, x2, y2 in rois
  int64_t count = 0, pooled[2] = {1, 1};
  double scale = 1;
  DType dtype = DType::kF32;  // of the arithmetic
  int64_t extent(int axis) const { return x->shape[axis + 2]; }
  // The coordinate at the begin or the end of a region, scaled.
  Expr End(const Expr& region, int axis, bool is_end) const {
    const Expr column = IntConst(first_column + (is_end ? 2 : 0) + (1 - axis));
    const Expr value = MakeCast(dtype, Load(rois, {region, column}));
    return scale == 1 ? value : value * NumberLike(value, scale);
  }
};

// RoiAlign samples bins at grid points: `samples` for each axis of a bin. The first `used` count.
struct AlignedRegions : Regions {
  Buffer batch;
  bool half_pixel = true, is_max = false;
  int64_t samples[2] = {0, 0};
  Buffer used[2];    // [region], of the type of the arithmetic
  Buffer places[2];  // [region, bin, sample], in the image
  Buffer inside[2];  // bool, of the same shape: whether the sample is near the image
  Buffer floors[2];
};

// The extent of a region along an axis.
Expr RegionExtent(const AlignedRegions& r, const Expr& region, int axis) {
  const Expr extent = r.End(region, axis, true) - r.End(region, axis, false);
  return r.half_pixel ? extent : LargerOf(extent, NumberLike(extent, 1));
}

// The grid of an axis. One that follows the region's size has at most the points of a region as large as the
// image.
void SetSamples(GraphBuilder& g, int64_t sampling_ratio, int axis, AlignedRegions* r) {
  const int64_t bins = r->pooled[axis];
  r->samples[axis] = sampling_ratio > 0 ? sampling_ratio : (r->extent(axis) + bins) / bins + 1;
  r->used[axis] = g.Map({r->count}, [&](const Axes& a) {
    const Expr most = FloatConst(static_cast<double>(r->samples[axis]), r->dtype);
    if (sampling_ratio > 0) return most;
    const Expr extent = RegionExtent(*r, a[0], axis);
    const Expr points = MakeUnary(Op::kCeil, Quotient(extent, NumberLike(extent, static_cast<double>(bins))));
    return ClampTo(points, NumberLike(extent, 0), most);
  });
}

void SetPlaces(GraphBuilder& g, int axis, AlignedRegions* r) {
  const std::vector<int64_t> shape = {r->count, r->pooled[axis], r->samples[axis]};
  const Buffer raw = g.Map(shape, [&](const Axes& a) {
    const Expr start = r->End(a[0], axis, false);
    const auto number = [&](double value) { return NumberLike(start, value); };
    const Expr bin = Quotient(RegionExtent(*r, a[0], axis), number(static_cast<double>(r->pooled[axis])));
    const Expr step = (MakeCast(r->dtype, a[2]) + number(0.5)) * bin;
    const Expr place = start + MakeCast(r->dtype, a[1]) * bin + Quotient(step, Load(r->used[axis], {a[0]}));
    return r->half_pixel ? place - number(0.5) : place;
  });
  const double extent = static_cast<double>(r->extent(axis));
  r->inside[axis] = g.Map(shape, [&](const Axes& a) {
    const Expr place = Load(raw, a);
    const Expr is_near =
        BothOf(AtMost(NumberLike(place, -1), place), AtMost(place, NumberLike(place, extent)));
    return BothOf(is_near, LessThan(MakeCast(r->dtype, a[2]), Load(r->used[axis], {a[0]})));
  });
  r->places[axis] = g.Map(shape, [&](const Axes& a) {
    const Expr place = Load(raw, a);
    return ClampTo(place, NumberLike(place, 0), NumberLike(place, extent - 1));
  });
  r->floors[axis] = FloorsOf(g, {r->places[axis]})[0];
}

// The largest weighted neighbour of a place: mode max of ONNX.
Expr LargestTerm(const std::vector<Expr>& place, const std::vector<Expr>& low,
                 const std::function<Expr(const std::vector<Expr>&)>& load) {
  Expr largest;
  for (int corner = 0; corner < 4; ++corner) {
    std::vector<Expr> index;
    Expr term;
    for (int i = 0; i < 2; ++i) {
      const bool is_upper = (corner >> i & 1) != 0;
      const Expr share = place[i] - MakeUnary(Op::kFloor, place[i]);
      const Expr factor = is_upper ? share : NumberLike(share, 1) - share;
      index.push_back(low[i] + static_cast<int64_t>(is_upper));
      term = term == nullptr ? factor : term * factor;
    }
    term = term * MakeCast(term->dtype, load(index));
    largest = largest == nullptr ? term : LargerOf(largest, term);
  }
  return largest;
}

Buffer PooledRegions(GraphBuilder& g, const AlignedRegions& r) {
  const std::vector<int64_t> shape = {r.count, r.x->shape[1], r.pooled[0], r.pooled[1]};
  const ReduceOp op = r.is_max ? ReduceOp::kMax : ReduceOp::kSum;
  const std::vector<int64_t> samples = {r.samples[0], r.samples[1]};
  const auto at = [](const Axes& a, const Axes& s, int axis) { return Axes{a[0], a[axis + 2], s[axis]}; };
  const Buffer pooled = g.Reduce(op, shape, samples, [&](const Axes& a, const Axes& s) {
    std::vector<Expr> place, low;
    Expr is_inside, is_used;
    for (int axis = 0; axis < 2; ++axis) {
      place.push_back(Load(r.places[axis], at(a, s, axis)));
      low.push_back(MakeCast(DType::kI64, Load(r.floors[axis], at(a, s, axis))));
      const Expr inside = Load(r.inside[axis], at(a, s, axis));
      const Expr used = LessThan(MakeCast(r.dtype, s[axis]), Load(r.used[axis], {a[0]}));
      is_inside = axis == 0 ? inside : BothOf(is_inside, inside);
      is_used = axis == 0 ? used : BothOf(is_used, used);
    }
    const Expr batch =
        ClampTo(MakeCast(DType::kI64, Load(r.batch, {a[0]})), IntConst(0), IntConst(r.x->shape[0] - 1));
    const auto load = [&](const std::vector<Expr>& index) { return LoadClamped(r.x, {batch, a[1]}, index); };
    const Expr zero = FloatConst(0, r.dtype);
    if (!r.is_max) return MakeSelect(is_inside, Interpolated(place, low, load), zero);
    return MakeSelect(is_used, MakeSelect(is_inside, LargestTerm(place, low, load), zero),
                      ReduceIdentity(ReduceOp::kMax, r.dtype));
  });
  return g.Map(shape, [&](const Axes& a) {
    const Expr points = Load(r.used[0], {a[0]}) * Load(r.used[1], {a[0]}), value = Load(pooled, a);
    const Expr one = NumberLike(points, 1);
    if (!r.is_max) return MakeCast(r.x->dtype, Quotient(value, LargerOf(points, one)));
    return MakeCast(r.x->dtype, MakeSelect(LessThan(points, one), NumberLike(value, 0), value));
  });
}

// The inputs x and rois, and the size of the result.
absl::Status SetRegions(const NodeImport& n, int64_t columns, Regions* r) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 4, 4));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 2, 2));
  r->x = n.In(0);
  r->rois = n.In(1);
  r->count = r->rois->shape[0];
  r->first_column = columns - 4;
  r->scale = n.Float("spatial_scale", 1);
  r->dtype = SumType(r->x->dtype);
  if (r->rois->shape[1] != columns)
    return n.Refuse(absl::StrCat("the regions are ", TypeText(r->rois), "; expected ", columns, " columns"));
  if (r->x->num_elements() == 0) return n.NotSupported("an image without elements");
  const std::vector<int64_t> shape = {r->count, r->x->shape[1], r->pooled[0], r->pooled[1]};
  if (r->pooled[0] < 1 || r->pooled[1] < 1 || !ShapeProblem(shape).empty())
    return n.Refuse(absl::StrCat("pools to ", ShapeText(shape), "; expected bins"));
  return absl::OkStatus();
}

// The first row or column of each bin of a region, and the one behind the last: i32[region, bin].
struct BinEnds {
  Buffer first, end;
};

BinEnds EndsOfBins(GraphBuilder& g, const Regions& r, int axis) {
  const auto ends = [&](bool is_end) {
    return g.Map({r.count, r.pooled[axis]}, [&](const Axes& a) {
      const auto rounded = [&](bool end) {
        const Expr place = r.End(a[0], axis, end);
        return MakeUnary(Op::kFloor, place + NumberLike(place, 0.5));
      };
      const Expr start = rounded(false), one = NumberLike(start, 1);
      const Expr extent = LargerOf(rounded(true) - start + one, one);
      const Expr bin = Quotient(extent, NumberLike(start, static_cast<double>(r.pooled[axis])));
      const Expr offset = MakeCast(r.dtype, is_end ? a[1] + 1 : a[1]) * bin;
      const Expr place = start + MakeUnary(is_end ? Op::kCeil : Op::kFloor, offset);
      return MakeCast(DType::kI32, ClampTo(place, NumberLike(place, 0),
                                           NumberLike(place, static_cast<double>(r.extent(axis)))));
    });
  };
  return {ends(false), ends(true)};
}

// Whether a row or column is in a bin.
Expr IsInBin(const BinEnds& ends, const Axes& bin, const Expr& place) {
  const auto load = [&](const Buffer& tensor) { return MakeCast(DType::kI64, Load(tensor, bin)); };
  return BothOf(AtMost(load(ends.first), place), LessThan(place, load(ends.end)));
}

}  // namespace

absl::Status ImportRoiAlign(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  AlignedRegions r;
  r.pooled[0] = n.Int("output_height", 1);
  r.pooled[1] = n.Int("output_width", 1);
  MYCC_RETURN_IF_ERROR(SetRegions(n, 4, &r));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 2, kTakesIntegers));
  r.batch = n.In(2);
  if (r.batch->shape != std::vector<int64_t>{r.count})
    return n.Refuse(absl::StrCat("the images of regions are ", TypeText(r.batch), "; expected ", r.count));
  const std::string mode = n.String("mode", "avg");
  if (mode != "avg" && mode != "max")
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected avg or max"));
  r.is_max = mode == "max";
  // Opset 10 has no half pixel.
  const std::string shift =
      n.opset() < 16 ? "output_half_pixel" : n.String("coordinate_transformation_mode", "half_pixel");
  if (shift != "half_pixel" && shift != "output_half_pixel")
    return n.Refuse(absl::StrCat("coordinate_transformation_mode is `", shift,
                                 "`; expected half_pixel or output_half_pixel"));
  r.half_pixel = shift == "half_pixel";
  const int64_t ratio = n.Int("sampling_ratio", 0);
  if (ratio < 0 || ratio > 1024)
    return n.Refuse(absl::StrCat("sampling_ratio is ", ratio, "; expected 0 to 1024"));
  for (int axis = 0; axis < 2; ++axis) {
    SetSamples(n.g(), ratio, axis, &r);
    SetPlaces(n.g(), axis, &r);
  }
  n.Set(0, PooledRegions(n.g(), r));
  return absl::OkStatus();
}

// Columns are reduced before rows.
absl::Status ImportMaxRoiPool(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const std::vector<int64_t> pooled = n.Ints("pooled_shape");
  if (pooled.size() != 2)
    return n.Refuse(absl::StrCat("pooled_shape is ", ShapeText(pooled), "; expected two numbers"));
  Regions r;
  std::ranges::copy(pooled, r.pooled);
  MYCC_RETURN_IF_ERROR(SetRegions(n, 5, &r));
  GraphBuilder& g = n.g();
  const BinEnds rows = EndsOfBins(g, r, 0), columns = EndsOfBins(g, r, 1);
  const Buffer batch = g.Map({r.count}, [&](const Axes& a) {
    return MakeCast(DType::kI32, Load(r.rois, {a[0], IntConst(0)}));
  });
  const Expr lowest = ReduceIdentity(ReduceOp::kMax, r.x->dtype);
  const int64_t channels = r.x->shape[1];
  const Buffer lines = g.Reduce(
      ReduceOp::kMax, {r.count, channels, r.extent(0), r.pooled[1]}, {r.extent(1)},
      [&](const Axes& a, const Axes& s) {
        const Expr image =
            ClampTo(MakeCast(DType::kI64, Load(batch, {a[0]})), IntConst(0), IntConst(r.x->shape[0] - 1));
        return MakeSelect(IsInBin(columns, {a[0], a[3]}, s[0]), Load(r.x, {image, a[1], a[2], s[0]}), lowest);
      });
  const std::vector<int64_t> shape = {r.count, channels, r.pooled[0], r.pooled[1]};
  const Buffer maxima = g.Reduce(ReduceOp::kMax, shape, {r.extent(0)}, [&](const Axes& a, const Axes& s) {
    return MakeSelect(IsInBin(rows, {a[0], a[2]}, s[0]), Load(lines, {a[0], a[1], s[0], a[3]}), lowest);
  });
  n.Set(0, g.Map(shape, [&](const Axes& a) {
    const auto is_empty = [&](const BinEnds& ends, const Expr& bin) {
      return AtMost(Load(ends.end, {a[0], bin}), Load(ends.first, {a[0], bin}));
    };
    const Expr value = Load(maxima, a);
    return MakeSelect(MakeBinary(Op::kOr, is_empty(rows, a[2]), is_empty(columns, a[3])),
                      NumberLike(value, 0), value);
  }));
  return absl::OkStatus();
}

}  // namespace mycc::onnx
