// Pooling against loops over its definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

// Attributes of two spatial axes, and the result's extents.
struct PoolCase {
  const char* name;
  Index image, kernel, strides, dilations, pads, out;
  bool ceil = false;
};

const PoolCase kPoolCases[] = {
    {"plain", {2, 2, 5, 6}, {2, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {4, 4}},
    {"strides and uneven pads", {1, 2, 6, 7}, {3, 3}, {2, 3}, {1, 1}, {1, 0, 2, 1}, {4, 2}},
    {"dilations", {1, 1, 7, 8}, {2, 3}, {1, 2}, {3, 2}, {1, 2, 1, 1}, {6, 4}},
    {"ceiled", {1, 2, 6, 7}, {3, 2}, {2, 3}, {1, 1}, {0, 0, 0, 0}, {3, 3}, true},
    {"the last window would begin in the padding",
     {1, 1, 4, 2},
     {1, 1},
     {3, 2},
     {1, 1},
     {0, 0, 1, 1},
     {2, 1},
     true},
    {"one window beyond all padding", {1, 2, 7, 5}, {40, 7}, {40, 3}, {1, 1}, {0, 1, 0, 0}, {1, 1}, true},
    {"one window with idle taps", {1, 1, 3, 4}, {6, 4}, {1, 2}, {1, 3}, {2, 4, 1, 3}, {1, 1}},
};

// One window: the elements that are in the image with their places, and the number in the padded image.
struct Window {
  std::vector<std::pair<double, Index>> elements;
  int64_t padded = 0;
};

Numbers Pooled(const PoolCase& c, const Numbers& x, const std::function<double(const Window&)>& value) {
  Numbers y{{c.image[0], c.image[1], c.out[0], c.out[1]}, {}};
  y.values.resize(ElementsOf(y.shape));
  ForEachIndex(y.shape, [&](const Index& o) {
    Window window;
    ForEachIndex(c.kernel, [&](const Index& t) {
      bool in_image = true, in_padding = true;
      Index at = {o[0], o[1]};
      for (size_t i = 0; i < 2; ++i) {
        at.push_back(o[i + 2] * c.strides[i] + t[i] * c.dilations[i] - c.pads[i]);
        in_image &= at.back() >= 0 && at.back() < c.image[i + 2];
        in_padding &= at.back() < c.image[i + 2] + c.pads[i + 2];
      }
      if (in_image) window.elements.push_back({x.At(at), at});
      window.padded += in_padding;
    });
    y.At(o) = value(window);
  });
  return y;
}

OneOperator PoolOperator(const char* name, const PoolCase& c, ElementType type, const Numbers& x) {
  OneOperator op(name, 22);
  op.Input(type, x).Ints("kernel_shape", c.kernel).Ints("strides", c.strides).Ints("pads", c.pads);
  return op.Ints("dilations", c.dilations).Int("ceil_mode", c.ceil);
}

double LargestOf(const Window& window) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const auto& [value, at] : window.elements) largest = std::max(largest, value);
  return largest;
}

// The position of the first maximum in the whole tensor.
double PositionOf(const Window& window, const PoolCase& c, bool is_column_major) {
  const double largest = LargestOf(window);
  for (const auto& [value, at] : window.elements) {
    if (value != largest) continue;
    const int64_t rows = c.image[2], columns = c.image[3];
    const int64_t place = is_column_major ? at[3] * rows + at[2] : at[2] * columns + at[3];
    return static_cast<double>((at[0] * c.image[1] + at[1]) * rows * columns + place);
  }
  return -1;
}

TEST(PoolingOperators, MaxPoolGivesMaximaAndTheirPositions) {
  for (const PoolCase& c : kPoolCases) {
    SCOPED_TRACE(c.name);
    // Few values, so that maxima occur several times.
    Numbers x = Numbers::Random(c.image, 1);
    for (double& value : x.values) value = std::floor(std::abs(value));
    for (const ElementType type : {kFloat, kFloat16, kInt8, kUint8}) {
      for (const bool is_column_major : {false, true}) {
        OneOperator op = PoolOperator("MaxPool", c, type, x);
        const auto got = op.Int("storage_order", is_column_major).Run(2, StorageOf(type));
        ExpectNumbers(got, 0, Pooled(c, x, LargestOf), 0);
        const auto position = [&](const Window& w) { return PositionOf(w, c, is_column_major); };
        ExpectNumbers(got, 1, Pooled(c, x, position), 0);
      }
    }
  }
}

TEST(PoolingOperators, PaddingIsNoMaximumOfLowestElements) {
  const PoolCase c{"", {1, 1, 2, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1, 0, 0}, {2, 2}};
  const Numbers zeros{{1, 1, 2, 2}, {0, 0, 0, 0}};
  ExpectNumbers(PoolOperator("MaxPool", c, kUint8, zeros).Run(2), 1, {{1, 1, 2, 2}, {0, 0, 0, 0}}, 0);
}

TEST(PoolingOperators, AveragePoolCountsThePaddingOrNot) {
  for (const PoolCase& c : kPoolCases) {
    SCOPED_TRACE(c.name);
    const Numbers x = Numbers::Random(c.image, 2);
    for (const bool with_padding : {false, true}) {
      const Numbers expected = Pooled(c, x, [&](const Window& w) {
        double sum = 0;
        for (const auto& [value, at] : w.elements) sum += value;
        return sum / static_cast<double>(with_padding ? w.padded : w.elements.size());
      });
      OneOperator op = PoolOperator("AveragePool", c, kFloat, x);
      ExpectNumbers(op.Int("count_include_pad", with_padding).Run(), 0, expected);
    }
  }
}

TEST(PoolingOperators, LpPoolTakesNorms) {
  for (const PoolCase& c : kPoolCases) {
    for (const int64_t p : {1, 2, 3}) {
      const Numbers x = Numbers::Random(c.image, 3);
      const Numbers expected = Pooled(c, x, [&](const Window& w) {
        double sum = 0;
        for (const auto& [value, at] : w.elements) sum += std::pow(std::abs(value), p);
        return std::pow(sum, 1.0 / static_cast<double>(p));
      });
      OneOperator op = PoolOperator("LpPool", c, kFloat, x);
      ExpectNumbers(op.Int("p", p).Run(), 0, expected);
    }
  }
}

TEST(PoolingOperators, MaxUnpoolUndoesMaxPool) {
  const Numbers x{{1, 2, 1, 2}, {1, 2, 3, 4}}, positions{{1, 2, 1, 2}, {5, 2, 8, 15}};
  OneOperator op("MaxUnpool", 11);
  op.Input(kFloat, x).Input(kInt64, positions).Ints("kernel_shape", {2, 2}).Ints("strides", {2, 2});
  ExpectNumbers(op.Run(), 0, {{1, 2, 2, 4}, {0, 0, 2, 0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4}}, 0);
}

TEST(PoolingOperators, AttributesThatDoNotFitAreRefused) {
  const Numbers x = Numbers::Random({1, 1, 4, 4}, 4);
  const auto message = [](const OneOperator& op) { return std::string(op.Run().status().message()); };
  EXPECT_THAT(message(OneOperator("MaxPool", 12).Input(kFloat, x)), HasSubstr("has no kernel_shape"));
  EXPECT_THAT(message(OneOperator("MaxPool", 12).Input(kFloat, x).Ints("kernel_shape", {5, 1})),
              HasSubstr("reaches over 5 elements"));
  EXPECT_THAT(message(OneOperator("MaxPool", 12).Input(kFloat, x).Ints("kernel_shape", {2})),
              HasSubstr("expected rank 3"));
  EXPECT_THAT(message(OneOperator("LpPool", 18).Input(kFloat, x).Ints("kernel_shape", {2, 2}).Int("p", 0)),
              HasSubstr("p is 0"));
}

}  // namespace
}  // namespace mycc::onnx
