// Operators on images against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

TEST(ImageOperators, DepthToSpaceUndoesSpaceToDepth) {
  const Numbers x = Numbers::Random({2, 3, 4, 6}, 1);
  const auto deep = OneOperator("SpaceToDepth", 13).Input(kFloat, x).Int("blocksize", 2).Run();
  ASSERT_TRUE(deep.ok()) << deep.status();
  EXPECT_EQ((*deep)[0].shape, (Index{2, 12, 2, 3}));
  ExpectNumbers(OneOperator("DepthToSpace", 13).Input(kFloat, (*deep)[0]).Int("blocksize", 2).Run(), 0, x);
  OneOperator other("DepthToSpace", 13);
  const Numbers y{{1, 4, 1, 1}, {1, 2, 3, 4}};
  other.Input(kInt32, y).Int("blocksize", 2).String("mode", "CRD");
  ExpectNumbers(other.Run(1, DType::kI32), 0, {{1, 1, 2, 2}, {1, 2, 3, 4}});
}

// The element of a plane at integers outside of it.
double Pixel(const Numbers& x, Index at, const std::string& padding, bool align_corners) {
  for (size_t i = 2; i < at.size(); ++i) {
    const int64_t extent = x.shape[i];
    if (padding == "zeros" && (at[i] < 0 || at[i] >= extent)) return 0;
    while (padding == "reflection" && extent > 1 && (at[i] < 0 || at[i] >= extent)) {
      const int64_t ends = align_corners ? 0 : 1;
      at[i] = at[i] < 0 ? -at[i] - ends : 2 * (extent - 1) + ends - at[i];
    }
    at[i] = std::clamp<int64_t>(at[i], 0, extent - 1);
  }
  return x.At(at);
}

// Bilinear sampling; reflecting and clamping the neighbours is the same as the place itself.
Numbers SampledAt(const Numbers& x, const Numbers& grid, const std::string& padding, bool align_corners) {
  Numbers y{{x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]}, {}};
  y.values.resize(ElementsOf(y.shape));
  ForEachIndex(y.shape, [&](const Index& o) {
    double place[2], low[2];
    for (int64_t i = 0; i < 2; ++i) {
      const double number = grid.At({o[0], o[2], o[3], 1 - i}), extent = static_cast<double>(x.shape[i + 2]);
      place[i] = align_corners ? (number + 1) / 2 * (extent - 1) : ((number + 1) * extent - 1) / 2;
      low[i] = std::floor(place[i]);
    }
    ForEachIndex({2, 2}, [&](const Index& upper) {
      double weight = 1;
      Index at = {o[0], o[1]};
      for (int64_t i = 0; i < 2; ++i) {
        weight *= upper[i] ? place[i] - low[i] : 1 - (place[i] - low[i]);
        at.push_back(static_cast<int64_t>(low[i]) + upper[i]);
      }
      y.At(o) += weight * Pixel(x, at, padding, align_corners);
    });
  });
  return y;
}

TEST(ImageOperators, GridSampleReadsItsNeighbours) {
  const Numbers x = Numbers::Random({2, 2, 3, 4}, 2);
  const Numbers grid = Numbers::Random({2, 5, 4, 2}, 3);
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const bool align_corners : {false, true}) {
      SCOPED_TRACE(testing::Message() << padding << align_corners);
      OneOperator op("GridSample", 20);
      op.Input(kFloat, x).Input(kFloat, grid).String("padding_mode", padding);
      ExpectNumbers(op.Int("align_corners", align_corners).Run(), 0,
                    SampledAt(x, grid, padding, align_corners));
    }
  }
}

TEST(ImageOperators, CubicSamplesOfALineAreOnTheLine) {
  Numbers x{{1, 1, 1, 8}, {0, 1, 2, 3, 4, 5, 6, 7}};
  OneOperator op("GridSample", 20);
  op.Input(kFloat, x).Input(kFloat, {{1, 1, 3, 2}, {-0.25, 0, 0.125, 0, 0.25, 0}}).String("mode", "cubic");
  const auto got = op.String("padding_mode", "border").Int("align_corners", 1).Run();
  ExpectNumbers(got, 0, {{1, 1, 1, 3}, {2.625, 3.9375, 4.375}}, 0.05);
}

TEST(ImageOperators, RoiAlignAveragesSamples) {
  // On a plane, the average of samples is the value in the middle of the bin.
  Numbers x{{2, 1, 6, 8}, std::vector<double>(96)};
  ForEachIndex(x.shape,
               [&](const Index& i) { x.At(i) = static_cast<double>(100 * i[0] + 10 * i[2] + i[3]); });
  for (const int64_t samples : {0, 1, 3}) {
    OneOperator op("RoiAlign", 16);
    op.Input(kFloat, x).Input(kFloat, {{2, 4}, {2, 2, 10, 6, 4, 4, 12, 8}}).Input(kInt64, {{2}, {0, 1}});
    op.Int("output_height", 2).Int("output_width", 2).Int("sampling_ratio", samples);
    op.Float("spatial_scale", 0.5);
    // Bins of 1 row and 2 columns, which begin at (0.5, 0.5) and (1.5, 1.5).
    ExpectNumbers(op.Run(), 0, {{2, 1, 2, 2}, {11.5, 13.5, 21.5, 23.5, 122.5, 124.5, 132.5, 134.5}});
  }
}

TEST(ImageOperators, MaxRoiPoolTakesTheLargestOfEachBin) {
  Numbers x{{1, 1, 4, 5}, std::vector<double>(20)};
  ForEachIndex(x.shape, [&](const Index& i) { x.At(i) = static_cast<double>(10 * i[2] + i[3]); });
  OneOperator op("MaxRoiPool", 11);
  op.Input(kFloat, x).Input(kFloat, {{2, 5}, {0, 1, 0, 4, 3, 0, 9, 9, 9, 9}}).Ints("pooled_shape", {2, 2});
  ExpectNumbers(op.Run(), 0, {{2, 1, 2, 2}, {12, 14, 32, 34, 0, 0, 0, 0}});
}

TEST(ImageOperators, Col2ImAddsOverlappingBlocks) {
  const Numbers x{{1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
  for (const bool is_known : {true, false}) {
    OneOperator op("Col2Im", 18);
    op.Input(kFloat, x).Constant(kInt64, {{2}, {2, 3}});
    is_known ? op.Constant(kInt64, {{2}, {2, 2}}) : op.Input(kInt64, {{2}, {2, 2}}).Declare({1, 1, 2, 3});
    ExpectNumbers(op.Run(), 0, {{1, 1, 2, 3}, {1, 5, 4, 5, 13, 8}});
  }
}

TEST(ImageOperators, ShapesThatDoNotFitAreRefused) {
  const Numbers x = Numbers::Random({1, 3, 4, 4}, 4);
  const auto message = [](const OneOperator& op) { return std::string(op.Run().status().message()); };
  EXPECT_THAT(message(OneOperator("DepthToSpace", 13).Input(kFloat, x).Int("blocksize", 2)),
              HasSubstr("a multiple of 4"));
  EXPECT_THAT(message(OneOperator("SpaceToDepth", 13).Input(kFloat, x).Int("blocksize", 3)),
              HasSubstr("a multiple of 3"));
  EXPECT_THAT(
      message(OneOperator("GridSample", 20).Input(kFloat, x).Input(kFloat, Numbers::Random({1, 2, 2, 3}, 5))),
      HasSubstr("expected a grid of the same rank"));
}

}  // namespace
}  // namespace mycc::onnx
