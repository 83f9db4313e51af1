// Convolutions and transposed ones against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

// Attributes of two spatial axes.
struct ConvCase {
  const char* name;
  Index image, weights;
  int64_t group;
  Index strides, dilations, pads;
};

// y[n, m, o] = b[m] + sum of x[n, c, o * stride + t * dilation - pad] * w[m, c, t].
Numbers ExpectedConv(const ConvCase& c, const Numbers& x, const Numbers& w, const Numbers& b) {
  Numbers y{{c.image[0], c.weights[0]}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (c.weights[i + 2] - 1) * c.dilations[i] + 1;
    y.shape.push_back((c.image[i + 2] + c.pads[i] + c.pads[i + 2] - reach) / c.strides[i] + 1);
  }
  y.values.resize(ElementsOf(y.shape));
  const int64_t outputs = c.weights[0] / c.group;
  ForEachIndex(y.shape, [&](const Index& o) {
    double sum = b.At({o[1]});
    ForEachIndex({c.weights[1], c.weights[2], c.weights[3]}, [&](const Index& t) {
      const int64_t row = o[2] * c.strides[0] + t[1] * c.dilations[0] - c.pads[0];
      const int64_t column = o[3] * c.strides[1] + t[2] * c.dilations[1] - c.pads[1];
      if (row < 0 || row >= c.image[2] || column < 0 || column >= c.image[3]) return;
      const int64_t channel = o[1] / outputs * c.weights[1] + t[0];
      sum += x.At({o[0], channel, row, column}) * w.At({o[1], t[0], t[1], t[2]});
    });
    y.At(o) = sum;
  });
  return y;
}

TEST(ConvOperators, ConvFollowsItsDefinition) {
  const ConvCase cases[] = {
      {"plain", {2, 3, 6, 5}, {4, 3, 3, 2}, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {"strides and uneven pads", {1, 2, 7, 6}, {3, 2, 3, 3}, 1, {2, 3}, {1, 1}, {2, 0, 1, 3}},
      {"dilations", {1, 2, 8, 9}, {3, 2, 2, 3}, 1, {1, 2}, {3, 2}, {1, 1, 1, 1}},
      {"groups", {1, 6, 5, 5}, {4, 3, 2, 2}, 2, {1, 1}, {1, 2}, {1, 0, 0, 1}},
      {"depthwise", {2, 4, 5, 5}, {4, 1, 3, 3}, 4, {2, 1}, {1, 1}, {1, 1, 1, 1}},
      {"depthwise with a multiplier", {1, 3, 5, 4}, {6, 1, 2, 2}, 3, {1, 1}, {1, 1}, {0, 1, 1, 0}},
      {"a window in the padding alone", {1, 1, 2, 2}, {1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {2, 2, 2, 2}},
  };
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Numbers x = Numbers::Random(c.image, 1), w = Numbers::Random(c.weights, 2);
    const Numbers b = Numbers::Random({c.weights[0]}, 3);
    const Numbers expected = ExpectedConv(c, x, w, b);
    for (const ElementType type : {kFloat, kDouble, kFloat16}) {
      OneOperator op("Conv", 22);
      op.Input(type, x).Constant(type, w).Input(type, b);
      op.Int("group", c.group).Ints("strides", c.strides).Ints("dilations", c.dilations).Ints("pads", c.pads);
      ExpectNumbers(op.Run(1, StorageOf(type)), 0, expected, type == kFloat16 ? 1e-3 : 1e-5);
    }
  }
}

TEST(ConvOperators, AutoPadIsThePaddingThatItMeans) {
  const Numbers x = Numbers::Random({1, 2, 7, 6}, 4), w = Numbers::Random({3, 2, 4, 3}, 5);
  const auto padded = [&](const char* auto_pad, const Index& pads) {
    SCOPED_TRACE(auto_pad);
    OneOperator with_mode("Conv", 11), with_pads("Conv", 11);
    for (OneOperator* op : {&with_mode, &with_pads})
      op->Input(kFloat, x).Input(kFloat, w).Ints("strides", {2, 1}).Ints("kernel_shape", {4, 3});
    const auto expected = with_pads.Ints("pads", pads).Run();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectNumbers(with_mode.String("auto_pad", auto_pad).Run(), 0, (*expected)[0]);
  };
  padded("SAME_UPPER", {1, 1, 2, 1});
  padded("SAME_LOWER", {2, 1, 1, 1});
  padded("VALID", {0, 0, 0, 0});
  padded("NOTSET", {0, 0, 0, 0});
}

TEST(ConvOperators, ConvRefusesWhatDoesNotFit) {
  const Numbers x = Numbers::Random({1, 4, 5, 5}, 6), w = Numbers::Random({4, 2, 3, 3}, 7);
  const auto refusal = [&](OneOperator op) {
    return std::string(op.Input(kFloat, x).Input(kFloat, w).Run().status().message());
  };
  EXPECT_THAT(refusal(OneOperator("Conv", 11)), HasSubstr("expected channels that fit"));
  EXPECT_THAT(refusal(OneOperator("Conv", 11).Int("group", 2).Ints("kernel_shape", {3, 2})),
              HasSubstr("kernel_shape is"));
  EXPECT_THAT(refusal(OneOperator("Conv", 11).Int("group", 2).Ints("dilations", {3, 1})),
              HasSubstr("reaches over 7 elements of spatial axis 0"));
  EXPECT_THAT(refusal(OneOperator("Conv", 11).Int("group", 2).String("auto_pad", "SAME")),
              HasSubstr("auto_pad is `SAME`"));
  EXPECT_THAT(refusal(OneOperator("Conv", 11).Int("group", 2).Ints("strides", {1, 0})),
              HasSubstr("strides is"));
}

// Each element of x adds its products with all taps to the result.
Numbers ExpectedTransposed(const ConvCase& c, const Index& out, const Numbers& x, const Numbers& w) {
  Numbers y{{c.image[0], c.weights[1] * c.group, out[0], out[1]}, {}};
  y.values.resize(ElementsOf(y.shape));
  const int64_t inputs = c.image[1] / c.group;
  ForEachIndex(c.image, [&](const Index& i) {
    ForEachIndex({c.weights[1], c.weights[2], c.weights[3]}, [&](const Index& t) {
      const int64_t row = i[2] * c.strides[0] + t[1] * c.dilations[0] - c.pads[0];
      const int64_t column = i[3] * c.strides[1] + t[2] * c.dilations[1] - c.pads[1];
      if (row < 0 || row >= out[0] || column < 0 || column >= out[1]) return;
      const int64_t channel = i[1] / inputs * c.weights[1] + t[0];
      y.At({i[0], channel, row, column}) += x.At(i) * w.At({i[1], t[0], t[1], t[2]});
    });
  });
  return y;
}

TEST(ConvOperators, ConvTransposeFollowsItsDefinition) {
  const struct {
    ConvCase conv;
    Index output_padding, out;
  } cases[] = {
      {{"plain", {2, 3, 3, 4}, {3, 2, 2, 3}, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}}, {0, 0}, {4, 6}},
      {{"whole phases", {1, 2, 3, 4}, {2, 3, 4, 4}, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}}, {0, 0}, {6, 8}},
      {{"odd taps", {1, 2, 4, 3}, {2, 2, 3, 3}, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}}, {1, 0}, {8, 5}},
      {{"one stride", {1, 2, 4, 3}, {2, 2, 3, 1}, 1, {3, 1}, {1, 1}, {0, 0, 2, 0}}, {2, 0}, {12, 3}},
      {{"fewer taps than the stride", {1, 1, 3, 3}, {1, 2, 2, 1}, 1, {3, 2}, {1, 1}, {0, 0, 0, 0}},
       {1, 1},
       {9, 6}},
      {{"dilations", {1, 2, 3, 4}, {2, 2, 2, 3}, 1, {2, 1}, {3, 2}, {1, 2, 0, 1}}, {0, 0}, {7, 5}},
      {{"groups", {1, 4, 3, 3}, {4, 2, 3, 2}, 2, {2, 2}, {1, 1}, {1, 0, 1, 0}}, {1, 0}, {6, 6}},
      {{"depthwise", {2, 3, 3, 3}, {3, 1, 4, 3}, 3, {2, 2}, {1, 1}, {1, 1, 1, 0}}, {0, 1}, {6, 7}},
      {{"depthwise with a multiplier", {1, 2, 3, 3}, {2, 2, 3, 3}, 2, {2, 1}, {1, 1}, {0, 1, 0, 1}},
       {0, 0},
       {7, 3}},
  };
  for (const auto& [c, output_padding, out] : cases) {
    SCOPED_TRACE(c.name);
    const Numbers x = Numbers::Random(c.image, 8), w = Numbers::Random(c.weights, 9);
    OneOperator op("ConvTranspose", 22);
    op.Input(kFloat, x).Constant(kFloat, w).Int("group", c.group).Ints("strides", c.strides);
    op.Ints("dilations", c.dilations).Ints("pads", c.pads).Ints("output_padding", output_padding);
    ExpectNumbers(op.Run(), 0, ExpectedTransposed(c, out, x, w));
  }
}

TEST(ConvOperators, OutputShapeOfConvTransposeDecidesThePadding) {
  const Numbers x = Numbers::Random({1, 1, 3, 3}, 10), w = Numbers::Random({1, 1, 3, 3}, 11);
  const auto expect = [&](const char* auto_pad, const Index& before) {
    SCOPED_TRACE(auto_pad);
    OneOperator op("ConvTranspose", 11);
    op.Input(kFloat, x).Input(kFloat, w).Ints("strides", {2, 2}).Ints("output_shape", {6, 5});
    const ConvCase c{"", {1, 1, 3, 3}, {1, 1, 3, 3}, 1, {2, 2}, {1, 1}, {before[0], before[1], 0, 0}};
    ExpectNumbers(op.String("auto_pad", auto_pad).Run(), 0, ExpectedTransposed(c, {6, 5}, x, w));
  };
  expect("SAME_UPPER", {0, 1});
  expect("NOTSET", {1, 1});
}

}  // namespace
}  // namespace mycc::onnx
