// Resize and Upsample against interpolation written as loops over one axis after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;
using Coordinate = std::function<double(double y, double in, double out, double scale)>;

// The weights of the elements around a place. The first one may be outside of the axis.
struct Taps {
  int64_t first;
  std::vector<double> weights;
};
using TapsAt = std::function<Taps(double place, double scale)>;

// Resizes one axis; elements beyond its ends are those at the ends.
Numbers ResizedAxisOf(const Numbers& x, size_t axis, int64_t out, double scale, const Coordinate& coordinate,
                      const TapsAt& taps_at) {
  Numbers y{x.shape, {}};
  const int64_t in = x.shape[axis];
  y.shape[axis] = out;
  y.values.resize(ElementsOf(y.shape));
  ForEachIndex(y.shape, [&](const Index& o) {
    const double place = coordinate(static_cast<double>(o[axis]), static_cast<double>(in),
                                    static_cast<double>(in) * scale, scale);
    const Taps taps = taps_at(place, scale);
    for (size_t t = 0; t < taps.weights.size(); ++t) {
      Index at = o;
      at[axis] = std::clamp<int64_t>(taps.first + static_cast<int64_t>(t), 0, in - 1);
      y.At(o) += taps.weights[t] * x.At(at);
    }
  });
  return y;
}

Taps OneTap(double place) { return {static_cast<int64_t>(place), {1}}; }

Taps LinearTaps(double place, double) {
  const double low = std::floor(place);
  return {static_cast<int64_t>(low), {1 - (place - low), place - low}};
}

double CubicWeight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

Taps CubicTaps(double place, double) {
  Taps taps{static_cast<int64_t>(std::floor(place)) - 1, {}};
  for (int64_t t = 0; t < 4; ++t)
    taps.weights.push_back(CubicWeight(static_cast<double>(taps.first + t) - place, -0.75));
  return taps;
}

// Elements that are nearer than 1 / scale, weighted by their distance.
Taps SmoothTaps(double place, double scale) {
  scale = std::min(scale, 1.0);
  Taps taps{static_cast<int64_t>(std::ceil(place - 1 / scale)), {}};
  double sum = 0;
  for (int64_t i = taps.first; static_cast<double>(i) <= place + 1 / scale; ++i) {
    taps.weights.push_back(std::max(1 - std::abs(static_cast<double>(i) - place) * scale, 0.0));
    sum += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= sum;
  return taps;
}

double HalfPixel(double y, double, double, double scale) { return (y + 0.5) / scale - 0.5; }

const std::vector<std::pair<const char*, Coordinate>>& Coordinates() {
  static const auto* const all = new std::vector<std::pair<const char*, Coordinate>>{
      {"half_pixel", HalfPixel},
      {"asymmetric", [](double y, double, double, double scale) { return y / scale; }},
      {"align_corners",
       [](double y, double in, double out, double) { return out == 1 ? 0 : y * (in - 1) / (out - 1); }},
      {"pytorch_half_pixel",
       [](double y, double in, double out, double s) { return out == 1 ? -0.5 : HalfPixel(y, in, out, s); }},
      {"half_pixel_symmetric",
       [](double y, double in, double out, double scale) {
         return in / 2 * (1 - std::floor(out) / out) + HalfPixel(y, in, out, scale);
       }},
  };
  return *all;
}

struct ScaleCase {
  double rows, columns;
};
const ScaleCase kScales[] = {{2, 3}, {1.5, 0.5}, {1, 2.25}, {0.25, 4}};

// The operator with scales, and what it computes.
void ExpectResized(const OneOperator& op, const ScaleCase& scale, const Coordinate& coordinate,
                   const TapsAt& taps, bool scales_are_known) {
  const Numbers x = Numbers::Random({1, 2, 4, 6}, 1);
  const auto rows = static_cast<int64_t>(4 * scale.rows), columns = static_cast<int64_t>(6 * scale.columns);
  Numbers expected = ResizedAxisOf(x, 2, rows, scale.rows, coordinate, taps);
  expected = ResizedAxisOf(expected, 3, columns, scale.columns, coordinate, taps);
  const Numbers scales{{4}, {1, 1, scale.rows, scale.columns}};
  OneOperator resize = op;
  resize.Input(kFloat, x).Omit();
  if (scales_are_known) {
    resize.Constant(kFloat, scales);
  } else {
    resize.Input(kFloat, scales).Declare({1, 2, rows, columns});
  }
  SCOPED_TRACE(testing::Message() << scale.rows << " " << scale.columns << " " << scales_are_known);
  ExpectNumbers(resize.Run(), 0, expected);
}

TEST(ResizeOperators, NearestRoundsInEachWay) {
  const std::pair<const char*, double (*)(double)> roundings[] = {
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round_prefer_floor", [](double x) { return std::ceil(x - 0.5); }},
      {"round_prefer_ceil", [](double x) { return std::floor(x + 0.5); }},
  };
  for (const auto& [rounding, round] : roundings) {
    for (const auto& [name, coordinate] : Coordinates()) {
      for (const ScaleCase& scale : kScales) {
        for (const bool is_known : {true, false}) {
          SCOPED_TRACE(testing::Message() << rounding << " " << name);
          OneOperator op("Resize", 19);
          op.String("nearest_mode", rounding).String("coordinate_transformation_mode", name);
          const auto one = [rounding_of = round](double place, double) { return OneTap(rounding_of(place)); };
          ExpectResized(op, scale, coordinate, one, is_known);
        }
      }
    }
  }
}

TEST(ResizeOperators, LinearAndCubicInterpolate) {
  for (const auto& [name, coordinate] : Coordinates()) {
    for (const ScaleCase& scale : kScales) {
      for (const bool is_known : {true, false}) {
        SCOPED_TRACE(name);
        OneOperator op("Resize", 13);
        op.String("coordinate_transformation_mode", name);
        ExpectResized(OneOperator(op).String("mode", "linear"), scale, coordinate, LinearTaps, is_known);
        ExpectResized(OneOperator(op).String("mode", "cubic"), scale, coordinate, CubicTaps, is_known);
      }
    }
  }
}

TEST(ResizeOperators, AntialiasSmoothsWhatShrinks) {
  for (const ScaleCase& scale : kScales) {
    for (const bool is_known : {true, false}) {
      OneOperator op("Resize", 18);
      op.String("mode", "linear").Int("antialias", 1);
      ExpectResized(op, scale, HalfPixel, SmoothTaps, is_known);
    }
  }
}

TEST(ResizeOperators, SizesKeepTheAspectWhenAsked) {
  const Numbers x = Numbers::Random({1, 1, 4, 6}, 2);
  const auto shape_of = [&](const char* policy) {
    OneOperator op("Resize", 18);
    op.Input(kFloat, x).Omit().Omit().Constant(kInt64, {{2}, {7, 8}}).Ints("axes", {-1, 2});
    const auto got = op.String("keep_aspect_ratio_policy", policy).Run();
    return got.ok() ? (*got)[0].shape : Index{};
  };
  EXPECT_EQ(shape_of("stretch"), (Index{1, 1, 8, 7}));
  EXPECT_EQ(shape_of("not_larger"), (Index{1, 1, 5, 7}));
  EXPECT_EQ(shape_of("not_smaller"), (Index{1, 1, 8, 12}));
}

TEST(ResizeOperators, CropsAndExtrapolates) {
  const Numbers x{{1, 1, 1, 5}, {0, 10, 20, 30, 40}};
  for (const bool is_known : {true, false}) {
    const Numbers roi{{2}, {0.25, 1.5}}, sizes{{1}, {6}};
    OneOperator op("Resize", 18);
    op.Input(kFloat, x);
    is_known ? op.Constant(kFloat, roi) : op.Input(kFloat, roi);
    op.Omit().Constant(kInt64, sizes).Ints("axes", {3}).String("mode", "linear");
    op.String("coordinate_transformation_mode", "tf_crop_and_resize").Float("extrapolation_value", -1);
    ExpectNumbers(op.Run(), 0, {{1, 1, 1, 6}, {10, 20, 30, 40, -1, -1}});
  }
}

TEST(ResizeOperators, IntegersAreRoundedAndBoolsMove) {
  const Numbers x{{1, 1, 1, 2}, {1, 2}}, scales{{4}, {1, 1, 1, 2}};
  OneOperator linear("Resize", 13), nearest("Resize", 13);
  linear.Input(kUint8, x).Omit().Constant(kFloat, scales).String("mode", "linear");
  ExpectNumbers(linear.Run(1, DType::kU8), 0, {{1, 1, 1, 4}, {1, 1, 2, 2}}, 0);
  nearest.Input(kBool, {{1, 1, 1, 2}, {0, 1}}).Omit().Constant(kFloat, scales);
  ExpectNumbers(nearest.Run(1, DType::kBool), 0, {{1, 1, 1, 4}, {0, 0, 1, 1}}, 0);
}

TEST(ResizeOperators, UpsampleIsAsymmetric) {
  const Numbers x{{1, 1, 1, 3}, {0, 10, 20}}, scales{{4}, {1, 1, 1, 2}};
  ExpectNumbers(OneOperator("Upsample", 9).Input(kFloat, x).Constant(kFloat, scales).Run(), 0,
                {{1, 1, 1, 6}, {0, 0, 10, 10, 20, 20}});
  OneOperator linear("Upsample", 9);
  linear.Input(kFloat, x).Constant(kFloat, scales).String("mode", "linear");
  ExpectNumbers(linear.Run(), 0, {{1, 1, 1, 6}, {0, 5, 10, 15, 20, 20}});
}

TEST(ResizeOperators, RefusesWhatIsNotDefined) {
  const Numbers x = Numbers::Random({1, 1, 2, 2}, 3);
  const auto message = [](const OneOperator& op) { return std::string(op.Run().status().message()); };
  OneOperator op("Resize", 13);
  op.Input(kFloat, x).Omit();
  EXPECT_THAT(message(op), HasSubstr("neither scales nor sizes"));
  EXPECT_THAT(message(OneOperator(op).Constant(kFloat, {{3}, {1, 1, 2}})), HasSubstr("expected 4 numbers"));
  EXPECT_THAT(message(OneOperator(op).Constant(kFloat, {{4}, {1, 1, 2, -1}})), HasSubstr("above 0"));
  EXPECT_THAT(message(OneOperator(op).Input(kFloat, {{4}, {1, 1, 2, 2}})), HasSubstr("not known"));
  EXPECT_THAT(message(OneOperator(op).Constant(kFloat, {{4}, {1, 1, 2, 2}}).String("mode", "area")),
              HasSubstr("mode is `area`"));
}

}  // namespace
}  // namespace mycc::onnx
