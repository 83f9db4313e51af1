// GridSample: an image of any number of spatial axes, sampled at the places that a grid tells.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/sampling.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

enum class GridMode { kNearest, kLinear, kCubic };
enum class GridPadding { kZeros, kBorder, kReflection };

struct GridSampling {
  Buffer x, grid;  // grid[n, out..., axis], the last spatial axis first
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;
  DType dtype = DType::kF32;  // of the arithmetic
  size_t rank() const { return x->shape.size() - 2; }
  int64_t extent(size_t i) const { return x->shape[i + 2]; }
};

// A place beyond the ends `low` and `high` is reflected at them until it is between them.
Expr ReflectedPlace(const Expr& place, double low, double high) {
  const auto number = [&](double value) { return NumberLike(place, value); };
  if (high <= low) return number(low);
  const double range = high - low;
  const Expr is_below = LessThan(place, number(low));
  const Expr beyond = MakeSelect(is_below, number(low) - place, place - number(high));
  const Expr times = MakeUnary(Op::kFloor, Quotient(beyond, number(range)));
  const Expr rest = beyond - times * number(range);
  const Expr half = times * number(0.5);
  const Expr is_even = MakeBinary(Op::kEq, MakeUnary(Op::kFloor, half), half);
  // An even number of reflections comes back from the end that was left.
  const Expr from_low = MakeBinary(Op::kEq, is_below, is_even);
  const Expr reflected = MakeSelect(from_low, number(low) + rest, number(high) - rest);
  return MakeSelect(MakeBinary(Op::kOr, is_below, LessThan(number(high), place)), reflected, place);
}

// The place that a number of the grid means along spatial axis `i`.
Expr GridPlace(const GridSampling& s, size_t i, const Expr& normalized) {
  const double extent = static_cast<double>(s.extent(i));
  const auto number = [&](double value) { return NumberLike(normalized, value); };
  const Expr shifted = normalized + number(1);
  Expr place = s.align_corners ? shifted * number(0.5) * number(extent - 1)
                               : (shifted * number(extent) - number(1)) * number(0.5);
  if (s.mode == GridMode::kNearest) place = MakeUnary(Op::kRound, place);
  const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? extent - 1 : extent - 0.5;
  if (s.padding == GridPadding::kReflection) return ReflectedPlace(place, low, high);
  // Cubic neighbours are clamped one by one, as PyTorch does; a place that is clamped itself would differ.
  if (s.padding == GridPadding::kZeros || s.mode == GridMode::kCubic) return place;
  const Expr is_outside = MakeBinary(Op::kOr, LessThan(place, number(low)), LessThan(number(high), place));
  return MakeSelect(is_outside, ClampTo(place, number(0), number(extent - 1)), place);
}

Places GridPlaces(GraphBuilder& g, const GridSampling& s) {
  const std::vector<int64_t> shape(s.grid->shape.begin(), s.grid->shape.end() - 1);
  Places places;
  for (size_t i = 0; i < s.rank(); ++i) {
    places.push_back(g.Map(shape, [&](const Axes& a) {
      Axes at = a;
      at.push_back(IntConst(static_cast<int64_t>(s.rank() - 1 - i)));
      return GridPlace(s, i, MakeCast(s.dtype, Load(s.grid, std::move(at))));
    }));
  }
  return places;
}

// The image at integers, which may be outside of it.
Expr GridPixel(const GridSampling& s, const Axes& outer, std::vector<Expr> index) {
  if (s.padding == GridPadding::kZeros) return LoadOrZero(s.x, outer, index);
  for (size_t i = 0; i < index.size() && s.padding == GridPadding::kReflection; ++i) {
    const int64_t last = s.align_corners ? 2 * s.extent(i) - 2 : 2 * s.extent(i) - 1;
    const int64_t period = s.align_corners ? last : last + 1;
    if (period == 0) continue;
    const Expr place = Mod(index[i], period);
    index[i] = MakeBinary(Op::kMin, place, IntConst(last) - place);
  }
  return LoadClamped(s.x, outer, index);
}

constexpr double kGridCubic = -0.75;
constexpr int64_t kCubicTaps = 4;

// The weights of the four neighbours along an axis: [tap, places...].
Buffer CubicWeights(GraphBuilder& g, const Buffer& places) {
  std::vector<int64_t> shape = places->shape;
  shape.insert(shape.begin(), kCubicTaps);
  return g.Map(shape, [&](const Axes& a) {
    const Expr place = Load(places, Axes(a.begin() + 1, a.end()));
    const auto number = [&](double value) { return NumberLike(place, value); };
    const Expr share = place - MakeUnary(Op::kFloor, place);
    const Expr x = Magnitude(share + number(1) - MakeCast(place->dtype, a[0]));
    const double w = kGridCubic;
    const Expr near = (number(w + 2) * x - number(w + 3)) * x * x + number(1);
    const Expr far = ((number(w) * x - number(5 * w)) * x + number(8 * w)) * x - number(4 * w);
    return MakeSelect(AtMost(x, number(1)), near, far);
  });
}

// Sums over the taps of spatial axis `i` and later ones; `index` has those of earlier axes.
Expr CubicSum(const GridSampling& s, const std::vector<Buffer>& weights, const std::vector<Expr>& low,
              const Axes& at, const Axes& outer, std::vector<Expr> index) {
  const size_t i = index.size();
  if (i == s.rank()) return MakeCast(s.dtype, GridPixel(s, outer, index));
  Expr sum;
  index.emplace_back();
  for (int64_t tap = 0; tap < kCubicTaps; ++tap) {
    index.back() = low[i] + (tap - 1);
    Axes at_weight = at;
    at_weight.insert(at_weight.begin(), IntConst(tap));
    const Expr term = CubicSum(s, weights, low, at, outer, index) * Load(weights[i], std::move(at_weight));
    sum = sum == nullptr ? term : sum + term;
  }
  return sum;
}

Buffer SampledAtGrid(GraphBuilder& g, const GridSampling& s) {
  const Places places = GridPlaces(g, s);
  const std::vector<Buffer> floors = FloorsOf(g, places);
  std::vector<Buffer> weights;
  for (size_t i = 0; i < s.rank() && s.mode == GridMode::kCubic; ++i)
    weights.push_back(CubicWeights(g, places[i]));
  std::vector<int64_t> shape = {s.x->shape[0], s.x->shape[1]};
  shape.insert(shape.end(), s.grid->shape.begin() + 1, s.grid->shape.end() - 1);
  return g.Map(shape, [&](const Axes& a) {
    Axes at = {a[0]};
    at.insert(at.end(), a.begin() + 2, a.end());
    const Axes outer = {a[0], a[1]};
    const std::vector<Expr> low = LoadEachIndex(floors, at);
    if (s.mode == GridMode::kNearest) return GridPixel(s, outer, low);
    const Expr value = s.mode == GridMode::kCubic
                           ? CubicSum(s, weights, low, at, outer, {})
                           : Interpolated(LoadEach(places, at), low, [&](const std::vector<Expr>& index) {
                               return GridPixel(s, outer, index);
                             });
    return MakeCast(s.x->dtype, value);
  });
}

absl::Status SetGridAttributes(const NodeImport& n, GridSampling* s) {
  const std::string mode = n.String("mode", "linear"), padding = n.String("padding_mode", "zeros");
  if (mode == "nearest") {
    s->mode = GridMode::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    s->mode = GridMode::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected linear, nearest or cubic"));
  }
  if (padding == "border") {
    s->padding = GridPadding::kBorder;
  } else if (padding == "reflection") {
    s->padding = GridPadding::kReflection;
  } else if (padding != "zeros") {
    return n.Refuse(absl::StrCat("padding_mode is `", padding, "`; expected zeros, border or reflection"));
  }
  s->align_corners = n.Int("align_corners", 0) != 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ImportGridSample(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesPlain));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 1, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 5));
  GridSampling s;
  s.x = n.In(0);
  s.grid = n.In(1);
  const bool fits = s.grid->shape.size() == s.x->shape.size() && s.grid->shape[0] == s.x->shape[0] &&
                    s.grid->shape.back() == static_cast<int64_t>(s.rank());
  if (!fits) {
    return n.Refuse(absl::StrCat("samples ", TypeText(s.x), " at ", TypeText(s.grid),
                                 "; expected a grid of the same rank and batch, with ", s.rank(),
                                 " numbers for each place"));
  }
  MYCC_RETURN_IF_ERROR(SetGridAttributes(n, &s));
  if (s.x->num_elements() == 0) return n.NotSupported("an image without elements");
  if (s.x->dtype == DType::kF64 || s.grid->dtype == DType::kF64) s.dtype = DType::kF64;
  n.Set(0, SampledAtGrid(n.g(), s), n.Typed(0).type);
  return absl::OkStatus();
}

}  // namespace mycc::onnx
