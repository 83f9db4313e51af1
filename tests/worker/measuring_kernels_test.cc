// The measuring kernels, on the host: they draw what RandomInputs draws, and judge as Compare does.
#include "worker/measuring_kernels.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "codegen/workload/compare.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/host_kernels.h"

namespace mycc {
namespace {

using host_kernels::Findings;

constexpr Findings kNothing = {0, ~0ull, 0, 0};

constexpr char kAllTypes[] = R"(
workload all(a: f64[77], b: f32[513], c: f16[4099], d: bf16[4099], e: i64[100], f: i32[100], g: i8[300],
             h: u8[300], i: bool[65], j: i32[9], m: f8e4m3[999], n: f8e5m2[999]) -> (y: f64[9]) {
  y[k] = a[k] + f64(b[k]) + f64(c[k]) + f64(d[k]) + f64(e[k]) + f64(f[k])
       + f64(g[k]) + f64(h[k]) + f64(i[k]) + a[clamp(j[k], 0, 76)] + f64(m[k]) + f64(n[k])
})";

TEST(MeasuringKernelsTest, DrawsWhatRandomInputsDraws) {
  const absl::StatusOr<Workload> workload = ParseWorkload(kAllTypes, "test");
  ASSERT_TRUE(workload.ok()) << workload.status();
  constexpr uint64_t kSeed = 0x123456789abcdef;
  const std::vector<NDArray> inputs = RandomInputs(*workload, kSeed);
  const std::vector<InputDraw> draws = DrawsOf(*workload);
  ASSERT_EQ(draws.size(), inputs.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const InputDraw& draw = draws[i];
    const int bytes = DTypeBytes(draw.dtype), dtype = static_cast<int>(draw.dtype);
    const uint64_t range = static_cast<uint64_t>(draw.high - draw.low + 1);
    std::vector<uint8_t> drawn(inputs[i].bytes.size());
    host_kernels::mycc_draw(drawn.data(), draw.count, dtype, bytes, kSeed, draw.first, draw.low, range);
    EXPECT_EQ(drawn, inputs[i].bytes) << workload->inputs[i].tensor->name;

    Findings findings = kNothing;
    host_kernels::mycc_check_drawn(drawn.data(), draw.count, dtype, bytes, kSeed, draw.first, draw.low, range,
                                   &findings);
    EXPECT_EQ(findings.wrong, 0u) << workload->inputs[i].tensor->name;
    drawn[5 * static_cast<size_t>(bytes)] ^= 1;
    host_kernels::mycc_check_drawn(drawn.data(), draw.count, dtype, bytes, kSeed, draw.first, draw.low, range,
                                   &findings);
    EXPECT_EQ(findings.wrong, 1u);
    EXPECT_EQ(findings.first_wrong, 5u);
  }
}

// Inputs of many rows of eight, whose elements some outputs read alone and others as rows.
constexpr char kRows[] = R"(
workload rows(a: f64[200,9], b: f32[200,9], c: f16[200,9], d: bf16[200,9], e: i64[200,9], f: i8[200,9],
              g: bool[200,9], h: f8e4m3[200,9], i: f8e5m2[200,9], j: u8[200,9])
    -> (y: f64[200], z: f64[200,9]) {
  y[k] = sum[l:9](a[k,l] + f64(b[k,l]) + f64(c[k,l]) + f64(d[k,l]) + f64(h[k,l]) + f64(i[k,l]))
  z[k,l] = f64(e[k,l]) + f64(f[k,l]) + f64(g[k,l]) + f64(j[k,l])
})";

TEST(MeasuringKernelsTest, SprinklesWhatSpecialInputsHas) {
  for (const char* text : {kAllTypes, kRows}) {
    const absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
    ASSERT_TRUE(workload.ok()) << workload.status();
    constexpr uint64_t kSeed = 77;
    std::vector<NDArray> sprinkled = RandomInputs(*workload, kSeed);
    const std::vector<NDArray> expected = SpecialInputs(*workload, kSeed);
    const std::vector<SpecialDraw> draws = SpecialDrawsOf(*workload, kSeed);
    ASSERT_EQ(draws.size(), sprinkled.size());
    for (size_t i = 0; i < draws.size(); ++i) {
      const SpecialDraw& draw = draws[i];
      const std::vector<unsigned long long> values(draw.values.begin(), draw.values.end());
      const std::vector<uint8_t> before = sprinkled[i].bytes;
      if (!values.empty()) {
        host_kernels::mycc_sprinkle(sprinkled[i].bytes.data(), draw.count, static_cast<int>(draw.dtype),
                                    DTypeBytes(draw.dtype), draw.seed, draw.one_in, draw.row, draw.small,
                                    values.data(), static_cast<int>(values.size()));
      }
      EXPECT_EQ(sprinkled[i].bytes, expected[i].bytes) << workload->inputs[i].tensor->name;
      const bool changes = draw.dtype != DType::kBool;
      EXPECT_TRUE(text == kAllTypes || (sprinkled[i].bytes != before) == changes)
          << workload->inputs[i].tensor->name;
    }
  }
}

TEST(MeasuringKernelsTest, GathersElements) {
  const std::vector<long long> places = {7, 0, 3};
  for (const int bytes : {1, 2, 4, 8}) {
    std::vector<uint8_t> from(static_cast<size_t>(8 * bytes)), to(static_cast<size_t>(3 * bytes));
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i);
    host_kernels::mycc_gather(to.data(), from.data(), places.data(), 3, bytes);
    for (size_t i = 0; i < to.size(); ++i) {
      const size_t place = static_cast<size_t>(places[i / bytes]);
      EXPECT_EQ(to[i], from[place * bytes + i % bytes]);
    }
  }
}

TEST(MeasuringKernelsTest, OneBitIsADifference) {
  for (const int bytes : {1, 2, 4, 8}) {
    std::vector<uint8_t> one(static_cast<size_t>(100 * bytes), 0x7f), other = one;
    Findings findings = kNothing;
    host_kernels::mycc_differ(one.data(), other.data(), 100, bytes, &findings);
    EXPECT_EQ(findings.wrong, 0u);
    other[static_cast<size_t>(42 * bytes)] ^= 1;
    other[static_cast<size_t>(99 * bytes + bytes - 1)] ^= 0x80;
    host_kernels::mycc_differ(one.data(), other.data(), 100, bytes, &findings);
    EXPECT_EQ(findings.wrong, 2u);
    EXPECT_EQ(findings.first_wrong, 42u);
  }
}

TEST(MeasuringKernelsTest, HalvesRoundToNearestEven) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -63 - i % 30);
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      uint16_t expected = 0;
      StoreScalar(dtype, &expected, {RoundFloat(dtype, value), 0});
      EXPECT_EQ(host_kernels::EncodeSmall(value, 16, dtype == DType::kF16 ? 10 : 7), expected) << value;
    }
    for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
      const uint8_t expected = FloatToFloat8Bits(dtype, static_cast<float>(RoundFloat(dtype, value)));
      EXPECT_EQ(host_kernels::EncodeSmall(value, 8, dtype == DType::kF8E4M3 ? 3 : 2), expected) << value;
    }
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      const double expected = LoadScalar(dtype, &half).f;
      const double got = host_kernels::LoadFloat(static_cast<int>(dtype), &half, 0);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << bits;
    }
  }
}

TEST(MeasuringKernelsTest, EightBitFloatsAreReadAsTheyAre) {
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (int bits = 0; bits < 256; ++bits) {
      const uint8_t byte = static_cast<uint8_t>(bits);
      const double expected = LoadScalar(dtype, &byte).f;
      const double got = host_kernels::LoadFloat(static_cast<int>(dtype), &byte, 0);
      EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << bits;
    }
  }
}

TEST(MeasuringKernelsTest, BytesBesideAnOutput) {
  std::vector<uint8_t> band(100, 0xa5);
  Findings findings = kNothing;
  host_kernels::mycc_check_bytes(band.data(), 100, 0xa5, &findings);
  EXPECT_EQ(findings.wrong, 0u);
  band[99] = 0;
  host_kernels::mycc_check_bytes(band.data(), 100, 0xa5, &findings);
  EXPECT_EQ(findings.first_wrong, 99u);
}

TEST(MeasuringKernelsTest, DigestsTellChangesAndExchanges) {
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7};
  const auto digest = [&bytes] {
    unsigned long long sum = 0;
    host_kernels::mycc_digest(bytes.data(), 7, &sum);
    return sum;
  };
  const auto whole = digest();
  std::swap(bytes[2], bytes[5]);
  EXPECT_NE(digest(), whole);
  std::swap(bytes[2], bytes[5]);
  EXPECT_EQ(digest(), whole);
  bytes[6] ^= 1;
  EXPECT_NE(digest(), whole);
}

// Random tensors with a few elements changed by amounts around the tolerance, and special values.
class JudgeTest : public ::testing::TestWithParam<DType> {};

TEST_P(JudgeTest, JudgesAsCompareDoes) {
  const DType dtype = GetParam();
  const int bytes = DTypeBytes(dtype);
  std::mt19937_64 random(static_cast<uint64_t>(dtype) + 7);
  const std::vector<double> specials = {std::numeric_limits<double>::quiet_NaN(),
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(), 0.0, -0.0};
  int wrong = 0;
  for (int round = 0; round < 300; ++round) {
    constexpr int64_t kCount = 50;
    std::vector<uint8_t> want(kCount * bytes), got(kCount * bytes);
    const Tolerance tolerance{.of_value = 0.01, .of_scale = 0.001};
    for (int64_t i = 0; i < kCount; ++i) {
      Scalar value{static_cast<double>(static_cast<int>(random() % 2000) - 1000) / 64,
                   static_cast<int64_t>(random() % 100)};
      if (round % 5 == 0 && IsFloat(dtype)) value.f *= SmallestNormal(dtype);  // few steps apart
      Scalar other = value;
      if (random() % 10 == 0) value.f = other.f = specials[random() % specials.size()];
      if (random() % 200 == 0) other.f = specials[random() % specials.size()];
      if (random() % 4 == 0) other.f += other.f * 0.0102 * static_cast<double>(random() % 100) / 99;
      if (random() % 200 == 0) other.i += 1;
      StoreScalar(dtype, &want[i * bytes], value);
      StoreScalar(dtype, &got[i * bytes], other);
    }
    std::vector<int64_t> places;
    if (round % 2 == 1) {
      for (int64_t i = 0; i < kCount; ++i) places.push_back((i * 7) % kCount);
    }
    const Comparison expected = Compare({dtype, want.data(), places, kCount}, got.data(), tolerance);
    unsigned long long scale = IsFloat(dtype) ? std::bit_cast<unsigned long long>(SmallestNormal(dtype)) : 0;
    Findings findings = kNothing;
    const int type = static_cast<int>(dtype);
    if (IsFloat(dtype)) host_kernels::mycc_scale(want.data(), kCount, type, &scale);
    host_kernels::mycc_compare(want.data(), got.data(), reinterpret_cast<const long long*>(places.data()),
                               kCount, type, tolerance.of_value, tolerance.of_scale, &scale, &findings);
    EXPECT_EQ(findings.wrong == 0, expected.passed) << expected.first_mismatch;
    EXPECT_EQ(host_kernels::DoubleOf(findings.max_abs_error), expected.max_abs_error);
    EXPECT_EQ(host_kernels::DoubleOf(findings.max_rel_error), expected.max_rel_error);
    if (expected.passed) continue;
    ++wrong;
    const int64_t i = static_cast<int64_t>(findings.first_wrong), place = places.empty() ? i : places[i];
    const double allowed = tolerance.of_value * std::abs(LoadScalar(dtype, &want[i * bytes]).f) +
                           tolerance.of_scale * host_kernels::DoubleOf(scale);
    EXPECT_EQ(DescribeMismatch(dtype, place, &want[i * bytes], &got[place * bytes], allowed),
              expected.first_mismatch);
  }
  EXPECT_GT(wrong, 10);
  EXPECT_LT(wrong, 290);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, JudgeTest,
                         ::testing::Values(DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                           DType::kI32, DType::kI8, DType::kU8, DType::kBool, DType::kF8E4M3,
                                           DType::kF8E5M2, DType::kI16, DType::kU16, DType::kU32,
                                           DType::kU64),
                         [](const auto& type) { return DTypeName(type.param); });

}  // namespace
}  // namespace mycc
