// TopK, the scatters, Det and DFT against their definitions, with NaN and with indices that are outside.
#include "codegen/runtime/artifact/library_kernels.h"

#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "tests/onnx/kernel_calls.h"

namespace mycc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The indices of a row, the best first: NaN above all numbers, equal ones by index.
std::vector<int64_t> SortedRow(const NDArray& x, int64_t first, int64_t n, int64_t stride, bool is_largest) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int64_t i) {
    const Scalar element = x.Get(first + i * stride);
    return IsFloat(x.dtype) ? element.f : IntToDouble(x.dtype, element.i);
  };
  const auto is_above = [&](int64_t a, int64_t b) {
    if (std::isnan(value(a)) || std::isnan(value(b))) return std::isnan(value(a)) && !std::isnan(value(b));
    return value(a) > value(b);
  };
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return is_largest ? is_above(a, b) : is_above(b, a); });
  return order;
}

void CheckTopK(const NDArray& x, int64_t axis, int64_t k, bool is_largest) {
  std::vector<int64_t> shape = x.shape;
  const int64_t n = shape[axis];
  shape[axis] = k;
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const auto results = CallKernel("top_k", {axis, is_largest}, {x}, {{x.dtype, shape}, {DType::kI64, shape}});
  for (int64_t row = 0; row < x.num_elements() / n; ++row) {
    const int64_t first = row / inner * n * inner + row % inner;
    const std::vector<int64_t> order = SortedRow(x, first, n, inner, is_largest);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = row / inner * k * inner + row % inner + j * inner;
      ASSERT_EQ(results[1].Get(at).i, order[j]) << DTypeName(x.dtype) << " row " << row << " place " << j;
      const int64_t bytes = DTypeBytes(x.dtype);
      ASSERT_EQ(memcmp(&results[0].bytes[at * bytes], &x.bytes[(first + order[j] * inner) * bytes], bytes),
                0);
    }
  }
}

TEST(TopKKernelTest, EveryTypeAlongEveryAxis) {
  std::mt19937_64 random(1);
  for (DType dtype :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI8, DType::kU8,
        DType::kBool, DType::kF8E4M3, DType::kF8E5M2, DType::kI16, DType::kU16, DType::kU32, DType::kU64}) {
    const NDArray x = RandomArray(dtype, {3, 17, 5}, 9, &random);
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (int64_t k : {int64_t{1}, x.shape[axis] / 2, x.shape[axis]}) {
        CheckTopK(x, axis, k, true);
        CheckTopK(x, axis, k, false);
      }
    }
  }
}

TEST(TopKKernelTest, SpecialNumbersHaveTheirPlaces) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E5M2}) {
    NDArray x = NDArray::Zeros(dtype, {8});
    const double infinity = std::numeric_limits<double>::infinity();
    const double values[] = {0.0, kNan, -infinity, -0.0, infinity, kNan, -1, 1};
    for (int64_t i = 0; i < 8; ++i) x.Set(i, Scalar{values[i], 0});
    CheckTopK(x, 0, 8, true);
    CheckTopK(x, 0, 8, false);
  }
}

TEST(TopKKernelTest, LimitsOfIntegers) {
  NDArray wide = NDArray::Zeros(DType::kU64, {3});
  for (int64_t i = 0; i < 3; ++i) wide.Set(i, Scalar{0, INT64_MIN * (i % 2) + i});
  CheckTopK(wide, 0, 3, true);
  NDArray x = NDArray::Zeros(DType::kI64, {4});
  const int64_t values[] = {INT64_MAX, INT64_MIN, 0, -1};
  for (int64_t i = 0; i < 4; ++i) x.Set(i, Scalar{0, values[i]});
  CheckTopK(x, 0, 4, true);
  CheckTopK(x, 0, 4, false);
}

int64_t Wrapped(int64_t index, int64_t extent) {
  if (index < 0) index += extent;
  return index < 0 || index >= extent ? -1 : index;
}

Scalar Combined(DType dtype, int64_t reduction, Scalar a, Scalar b) {
  const auto of = [&](auto x, auto y) -> decltype(x) {
    switch (reduction) {
      case kMyccScatterAdd: return x + y;
      case kMyccScatterMul: return x * y;
      case kMyccScatterMax: return std::max(x, y);
      case kMyccScatterMin: return std::min(x, y);
      default: return y;
    }
  };
  if (IsFloat(dtype)) return Scalar{RoundFloat(dtype, of(a.f, b.f)), 0};
  if (dtype == DType::kU64)
    return Scalar{0, static_cast<int64_t>(of(static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i)))};
  return Scalar{0, WrapInt(dtype, of(a.i, b.i))};
}

// Indices; some are beyond the extent, and far away too.
NDArray HostileIndices(DType dtype, std::vector<int64_t> shape, int64_t extent, std::mt19937_64* random) {
  NDArray indices = RandomArray(dtype, std::move(shape), static_cast<double>(extent) + 3, random);
  const int64_t largest = dtype == DType::kI64 ? INT64_MAX : INT32_MAX;
  indices.Set(0, Scalar{0, largest});
  if (indices.num_elements() > 1) indices.Set(1, Scalar{0, -largest - 1});
  return indices;
}

void CheckScatterElements(DType dtype, DType index_type, int64_t axis, int64_t reduction,
                          std::mt19937_64* random) {
  const NDArray data = RandomArray(dtype, {4, 5, 6}, 3, random),
                updates = RandomArray(dtype, {3, 5, 2}, 3, random);
  const NDArray indices = HostileIndices(index_type, updates.shape, data.shape[axis], random);
  NDArray expected = data;
  for (int64_t i = 0; i < updates.num_elements(); ++i) {
    int64_t at[] = {i / 10, i / 2 % 5, i % 2};
    at[axis] = Wrapped(indices.Get(i).i, data.shape[axis]);
    if (at[axis] < 0) continue;
    const int64_t place = (at[0] * 5 + at[1]) * 6 + at[2];
    expected.Set(place, Combined(dtype, reduction, expected.Get(place), updates.Get(i)));
  }
  const auto results =
      CallKernel("scatter_elements", {reduction, axis}, {data, indices, updates}, {{dtype, data.shape}});
  EXPECT_EQ(results[0].bytes, expected.bytes)
      << DTypeName(dtype) << " axis " << axis << " reduction " << reduction;
}

TEST(ScatterKernelTest, ElementsWithHostileIndices) {
  std::mt19937_64 random(2);
  for (DType dtype : {DType::kF64, DType::kF32, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                      DType::kU64, DType::kU32, DType::kU16, DType::kU8}) {
    for (int64_t reduction = kMyccScatterNone; reduction <= kMyccScatterMin; ++reduction) {
      for (int64_t axis = 0; axis < 3; ++axis) {
        CheckScatterElements(dtype, DType::kI64, axis, reduction, &random);
        CheckScatterElements(dtype, DType::kI32, axis, reduction, &random);
      }
    }
  }
  CheckScatterElements(DType::kF16, DType::kI64, 1, kMyccScatterNone, &random);
  CheckScatterElements(DType::kBool, DType::kI64, 2, kMyccScatterNone, &random);
}

void CheckScatterSlices(DType dtype, int64_t depth, int64_t reduction, std::mt19937_64* random) {
  const NDArray data = RandomArray(dtype, {4, 3, 5}, 3, random);
  const std::vector<int64_t> slice(data.shape.begin() + depth, data.shape.end());
  std::vector<int64_t> shape = {9};
  shape.insert(shape.end(), slice.begin(), slice.end());
  const NDArray updates = RandomArray(dtype, shape, 3, random);
  const NDArray indices = HostileIndices(DType::kI64, {9, depth}, 4, random);
  const int64_t size = updates.num_elements() / 9;
  NDArray expected = data;
  for (int64_t tuple = 0; tuple < 9; ++tuple) {
    int64_t place = 0;
    bool is_inside = true;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t index = Wrapped(indices.Get(tuple * depth + i).i, data.shape[i]);
      is_inside &= index >= 0;
      place = place * data.shape[i] + index;
    }
    for (int64_t i = 0; is_inside && i < size; ++i) {
      const int64_t at = place * size + i;
      expected.Set(at, Combined(dtype, reduction, expected.Get(at), updates.Get(tuple * size + i)));
    }
  }
  const auto results =
      CallKernel("scatter_nd", {reduction, 0}, {data, indices, updates}, {{dtype, data.shape}});
  EXPECT_EQ(results[0].bytes, expected.bytes)
      << DTypeName(dtype) << " depth " << depth << " reduction " << reduction;
}

TEST(ScatterKernelTest, SlicesWithHostileIndices) {
  std::mt19937_64 random(3);
  for (DType dtype : {DType::kF64, DType::kF32, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                      DType::kU64, DType::kU32, DType::kU16, DType::kU8}) {
    for (int64_t reduction = kMyccScatterNone; reduction <= kMyccScatterMin; ++reduction) {
      for (int64_t depth = 1; depth <= 3; ++depth) CheckScatterSlices(dtype, depth, reduction, &random);
    }
  }
}

// The sum over all permutations.
double DeterminantByRows(const NDArray& x, int64_t matrix, int64_t row, uint32_t used, int64_t n) {
  if (row == n) return 1;
  double sum = 0, sign = 1;
  for (int64_t column = 0; column < n; ++column) {
    if (used >> column & 1) continue;
    sum += sign * x.Get((matrix * n + row) * n + column).f *
           DeterminantByRows(x, matrix, row + 1, used | 1u << column, n);
    sign = -sign;
  }
  return sum;
}

TEST(DetKernelTest, MatricesOfSixRows) {
  std::mt19937_64 random(4);
  for (DType dtype : {DType::kF32, DType::kF64}) {
    NDArray x = RandomArray(dtype, {4, 6, 6}, 2, &random);
    for (int64_t i = 0; i < 6; ++i) x.Set(36 + i * 6, Scalar{0, 0});  // a column of zeros
    for (int64_t i = 0; i < 6; ++i)
      x.Set(72 + i, Scalar{0, 0}), x.Set(77, Scalar{1, 0});  // a pivot at the end
    const NDArray det = CallKernel("det", {}, {x}, {{dtype, {4}}})[0];
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(det.Get(i).f, DeterminantByRows(x, i, 0, 0, 6), 1e-3);
  }
}

// The transform by its definition, of x[2, n, 3, parts].
void CheckFourier(int64_t n, int64_t length, bool is_inverse, bool is_one_sided, int64_t parts) {
  std::mt19937_64 random(5);
  const NDArray x = RandomArray(DType::kF64, {2, n, 3, parts}, 1, &random);
  const bool is_half = is_inverse && is_one_sided;
  const int64_t extent = is_one_sided && !is_inverse ? length / 2 + 1 : length, results = is_half ? 1 : 2;
  const NDArray y =
      CallKernel("dft", {length, is_inverse, is_one_sided}, {x}, {{DType::kF64, {2, extent, 3, results}}})[0];
  const auto element = [&](int64_t o, int64_t k, int64_t i) -> std::complex<double> {
    const bool is_mirrored = is_half && k > length / 2;
    const int64_t at = is_mirrored ? length - k : k, place = ((o * n + at) * 3 + i) * parts;
    if (at >= n) return 0;
    const bool is_real = parts == 1 || (is_half && (k == 0 || 2 * k == length));
    const std::complex<double> value(x.Get(place).f, is_real ? 0 : x.Get(place + 1).f);
    return is_mirrored ? std::conj(value) : value;
  };
  for (int64_t row = 0; row < 2 * extent * 3; ++row) {
    const int64_t o = row / (3 * extent), k = row / 3 % extent, i = row % 3;
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      const double angle =
          (is_inverse ? 2 : -2) * M_PI * static_cast<double>(j * k % length) / static_cast<double>(length);
      sum += element(o, j, i) * std::polar(1.0, angle);
    }
    if (is_inverse) sum /= static_cast<double>(length);
    ASSERT_NEAR(y.Get(row * results).f, sum.real(), 1e-9) << n << " " << length << " element " << row;
    if (results == 2) {
      ASSERT_NEAR(y.Get(row * 2 + 1).f, sum.imag(), 1e-9) << n << " " << length << " element " << row;
    }
  }
}

TEST(DftKernelTest, LengthsAndForms) {
  for (int64_t length : {1, 2, 3, 7, 8, 12, 16, 31, 60}) {
    for (int64_t n : {length, length + 3, length / 2 + 1}) {
      for (int64_t parts : {1, 2}) {
        CheckFourier(n, length, false, false, parts);
        CheckFourier(n, length, true, false, parts);
      }
      CheckFourier(n, length, false, true, 1);
      CheckFourier(n, length, true, true, 2);
    }
  }
}

}  // namespace
}  // namespace mycc
