#include "codegen/onnx/resized_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "codegen/onnx/elementwise.h"

namespace mycc::onnx {
namespace {

Expr Double(double value) { return FloatConst(value, DType::kF64); }
Expr RoundedDown(const Expr& x) { return MakeUnary(Op::kFloor, x); }

// The place of result `i` on the input's axis; the sizes are the unrounded ones.
Expr CoordinateOf(const ResizedAxis& axis, const std::string& mode, const Expr& i) {
  const double in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const Expr y = MakeCast(DType::kF64, i), half = Double(0.5);
  const Expr width = axis.scale * Double(in);
  const Expr is_one = MakeBinary(Op::kEq, width, Double(1));
  const Expr centered = Quotient(y + half, axis.scale) - half;
  if (mode == "asymmetric") return Quotient(y, axis.scale);
  if (mode == "tf_half_pixel_for_nn") return Quotient(y + half, axis.scale);
  if (mode == "pytorch_half_pixel") return MakeSelect(is_one, Double(-0.5), centered);
  if (mode == "align_corners")
    return MakeSelect(is_one, Double(0), Quotient(y * Double(in - 1), width - Double(1)));
  if (mode == "half_pixel_symmetric")
    return Double(in / 2) * (Double(1) - Quotient(Double(out), width)) + centered;
  if (mode == "tf_crop_and_resize") {
    const Expr extent = (axis.roi_end - axis.roi_begin) * Double(in - 1);
    const Expr place = MakeSelect(is_one, extent * half, Quotient(y * extent, width - Double(1)));
    return place + axis.roi_begin * Double(in - 1);
  }
  return centered;
}

Expr RoundedPlace(const Expr& x, const std::string& mode) {
  if (mode == "floor") return RoundedDown(x);
  if (mode == "ceil") return MakeUnary(Op::kCeil, x);
  if (mode == "round_prefer_ceil") return RoundedDown(x + Double(0.5));
  return MakeUnary(Op::kCeil, x - Double(0.5));
}

// The weight of an element at a distance from the place.
Expr WeightAt(const Expr& distance, Interpolation interpolation, double a) {
  const Expr x = Magnitude(distance);
  if (interpolation == Interpolation::kLinear) return MakeBinary(Op::kMax, Double(1) - x, Double(0));
  const Expr near = ((Double(a + 2) * x - Double(a + 3)) * x) * x + Double(1);
  const Expr far = ((Double(a) * x - Double(5 * a)) * x + Double(8 * a)) * x - Double(4 * a);
  return MakeSelect(AtMost(x, Double(1)), near, MakeSelect(LessThan(x, Double(2)), far, Double(0)));
}

// The taps of a kernel that is stretched where the axis shrinks.
int64_t NumberOfTaps(const ResizedAxis& axis, const ResizeOptions& options) {
  const int64_t reach = options.interpolation == Interpolation::kLinear ? 1 : 2;
  if (!options.antialias) return 2 * reach;
  // A scale that is not known yet is at least the quotient of the extents.
  const double least = static_cast<double>(axis.out) / static_cast<double>(axis.in);
  const double scale = std::min(axis.known_scale.value_or(least), 1.0);
  return 2 * static_cast<int64_t>(std::ceil(static_cast<double>(reach) / scale));
}

Buffer WeightsOf(GraphBuilder& g, const ResizedAxis& axis, const ResizeOptions& options, const Buffer& places,
                 const AxisTaps& taps, DType dtype) {
  const bool is_normalized = options.antialias || options.exclude_outside;
  const auto weight = [&](const Expr& i, const Expr& tap) {
    const Expr element = MakeCast(DType::kI64, Load(taps.first, {i})) + tap;
    Expr distance = MakeCast(DType::kF64, element) - Load(places, {i});
    if (options.antialias) distance = distance * MakeBinary(Op::kMin, axis.scale, Double(1));
    const Expr value = WeightAt(distance, options.interpolation, options.cubic_a);
    if (!options.exclude_outside) return value;
    const Expr is_inside =
        MakeBinary(Op::kAnd, AtMost(IntConst(0), element), LessThan(element, IntConst(axis.in)));
    return MakeSelect(is_inside, value, Double(0));
  };
  const std::vector<int64_t> shape = {axis.out, taps.taps};
  if (!is_normalized) return g.Map(shape, [&](const Axes& a) { return MakeCast(dtype, weight(a[0], a[1])); });
  const Buffer sums = g.Reduce(ReduceOp::kSum, {axis.out}, {taps.taps},
                               [&](const Axes& a, const Axes& r) { return weight(a[0], r[0]); });
  return g.Map(shape, [&](const Axes& a) {
    return MakeCast(dtype, Quotient(weight(a[0], a[1]), Load(sums, {a[0]})));
  });
}

// The numbers a, b, d for which table[i] = (a * i + b) // d.
struct Line {
  int64_t a, b, d;
};

std::optional<int64_t> OffsetOf(const std::vector<int64_t>& table, int64_t a, int64_t d) {
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < table.size(); ++i) {
    const int64_t least = table[i] * d - a * static_cast<int64_t>(i);
    low = std::max(low, least);
    high = std::min(high, least + d - 1);
  }
  if (low > high) return std::nullopt;
  // Zero makes the shortest expression.
  return low <= 0 && 0 <= high ? 0 : low;
}

std::optional<Line> LineOf(const std::vector<int64_t>& table, int64_t in) {
  constexpr int64_t kMostTried = 32;
  const int64_t out = static_cast<int64_t>(table.size());
  const double slope =
      out > 1 ? static_cast<double>(table.back() - table.front()) / static_cast<double>(out - 1) : 0;
  std::vector<std::pair<int64_t, int64_t>> slopes;
  for (int64_t d = 1; d <= kMostTried; ++d)
    slopes.push_back({std::llround(slope * static_cast<double>(d)), d});
  for (const auto& [a, d] : {std::pair(in, out), std::pair(2 * in, 2 * out), std::pair(in - 1, out - 1)}) {
    const int64_t common = std::gcd(a, d);
    if (d > 0 && common > 0) slopes.push_back({a / common, d / common});
  }
  for (const auto& [a, d] : slopes) {
    if (const auto b = OffsetOf(table, a, d)) return Line{a, *b, d};
    // The mean slope of few elements is not exact.
    if (const auto b = OffsetOf(table, a + 1, d)) return Line{a + 1, *b, d};
  }
  return std::nullopt;
}

}  // namespace

AxisTaps TapsOf(GraphBuilder& g, const ResizedAxis& axis, const ResizeOptions& options, DType dtype) {
  AxisTaps taps;
  taps.axis = axis.axis;
  taps.in = axis.in;
  if (axis.in == 1) return taps;
  const Buffer places =
      g.Map({axis.out}, [&](const Axes& a) { return CoordinateOf(axis, options.coordinates, a[0]); });
  const bool is_nearest = options.interpolation == Interpolation::kNearest;
  if (!is_nearest) taps.taps = NumberOfTaps(axis, options);
  taps.first = g.Map({axis.out}, [&](const Axes& a) {
    const Expr place = Load(places, {a[0]});
    const Expr first = is_nearest ? RoundedPlace(place, options.nearest)
                                  : RoundedDown(place) + Double(1.0 - static_cast<double>(taps.taps / 2));
    return MakeCast(DType::kI32, first);
  });
  if (!is_nearest) taps.weights = WeightsOf(g, axis, options, places, taps, dtype);
  if (options.coordinates == "tf_crop_and_resize") {
    taps.outside = g.Map({axis.out}, [&](const Axes& a) {
      const Expr place = Load(places, {a[0]});
      return MakeBinary(Op::kOr, LessThan(place, Double(0)),
                        LessThan(Double(static_cast<double>(axis.in - 1)), place));
    });
  }
  return taps;
}

Expr TapIndex(const GraphBuilder& g, const AxisTaps& taps, const Expr& i, const Expr& tap) {
  if (taps.first == nullptr) return IntConst(0);
  const Expr last = IntConst(taps.in - 1);
  const NDArray* known = g.ValueOf(taps.first);
  if (known == nullptr) return ClampTo(MakeCast(DType::kI64, Load(taps.first, {i})) + tap, IntConst(0), last);
  std::vector<int64_t> table(known->num_elements());
  for (size_t k = 0; k < table.size(); ++k) table[k] = known->Get(static_cast<int64_t>(k)).i;
  const std::optional<Line> line = LineOf(table, taps.in);
  if (!line) return ClampTo(MakeCast(DType::kI64, Load(taps.first, {i})) + tap, IntConst(0), last);
  Expr index = FloorDiv(i * line->a + line->b, line->d) + tap;
  const auto [least, most] = std::ranges::minmax_element(table);
  int64_t number = 0;
  const bool is_one = IsConstInt(tap, &number);
  if (*least + number < 0) index = MakeBinary(Op::kMax, index, IntConst(0));
  if (*most + (is_one ? number : taps.taps - 1) >= taps.in) index = MakeBinary(Op::kMin, index, last);
  return index;
}

}  // namespace mycc::onnx
