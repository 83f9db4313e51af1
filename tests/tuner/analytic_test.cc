// The order of the analytic model's estimates on a CPU, for pairs of schedules whose order is beyond doubt.
#include "tuner/cost/analytic.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

double Seconds(const std::string& workload, const std::string& steps, const Target& target = Avx2Target()) {
  const auto seconds = EstimateSeconds(ScheduleOf(workload, steps, target).function(), target);
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  return seconds.value_or(1e9);
}

TEST(AnalyticTest, GemmLadder) {
  const std::string gemm = GemmText(1024, 1024, 1024);
  const double naive = Seconds(gemm, "");
  const double vectors =
      Seconds(gemm, "split(t2.a1, [8])\nreorder([t2.a0, t2.r0, t2.a1.0, t2.a1.1])\nbind(t2.a1.1, vector)\n");
  const double unpacked = Seconds(gemm, TiledGemmSteps(6, 16, 8, 8, false, false));
  const double packed = Seconds(gemm, TiledGemmSteps(6, 16, 8, 8, false, true));
  EXPECT_LT(10 * vectors, naive);
  EXPECT_LT(1.5 * unpacked, vectors);
  EXPECT_LT(1.1 * packed, unpacked);
}

TEST(AnalyticTest, GemmIsBelowThePeakAndNotFar) {
  const std::string gemm = GemmText(1024, 1024, 1024);
  const double flops = 2.0 * 1024 * 1024 * 1024;
  const double avx2 = flops / Seconds(gemm, TiledGemmSteps(6, 16, 8, 8, false, true)) / (3.4e9 * 32);
  const double avx512 =
      flops / Seconds(gemm, TiledGemmSteps(14, 32, 8, 8, false, true), Avx512Target()) / (3.0e9 * 64);
  EXPECT_GT(avx2, 0.6);
  EXPECT_LT(avx2, 1.0);
  EXPECT_GT(avx512, 0.6);
  EXPECT_LT(avx512, 1.0);
}

TEST(AnalyticTest, RegisterTiles) {
  const std::string gemm = GemmText(768, 768, 512);
  const double good = Seconds(gemm, TiledGemmSteps(6, 16, 4, 4, false, true));
  EXPECT_LT(1.3 * good, Seconds(gemm, TiledGemmSteps(2, 8, 4, 4, false, true)));    // latency
  EXPECT_LT(1.15 * good, Seconds(gemm, TiledGemmSteps(8, 16, 4, 4, false, true)));  // spills
  EXPECT_LT(1.03 * good, Seconds(gemm, TiledGemmSteps(12, 8, 4, 4, false, true)));  // loads
}

TEST(AnalyticTest, ThreadsHelpLargeKernelsAndHinderSmallOnes) {
  const Target two = Avx2Target(2);
  const auto gain = [&](const std::string& gemm, int mt) {
    return Seconds(gemm, TiledGemmSteps(6, 16, mt, 1, false, true), two) /
           Seconds(gemm, TiledGemmSteps(6, 16, mt, 1, true, true), two);
  };
  EXPECT_GT(gain(GemmText(768, 768, 768), 4), 1.8);
  EXPECT_LT(gain(GemmText(12, 16, 16), 1), 1.0);
  // Three blocks for two threads.
  EXPECT_NEAR(gain(GemmText(18 * 32, 768, 768), 32), 1.5, 0.1);
}

TEST(AnalyticTest, RowsAndColumns) {
  const std::string relu =
      "workload r(x: f32[1024,1024]) -> (y: f32[1024,1024]) { y[i,j] = max(x[i,j], 0.0) }";
  const double scalar = Seconds(relu, "");
  const double vectors = Seconds(relu, "split(t1.a1, [8])\nbind(t1.a1.1, vector)\n");
  const double columns =
      Seconds(relu, "split(t1.a0, [8])\nreorder([t1.a1, t1.a0.0, t1.a0.1])\nbind(t1.a0.1, vector)\n");
  EXPECT_LT(1.3 * vectors, scalar);
  EXPECT_LT(2 * vectors, columns);
}

TEST(AnalyticTest, TransposesWantTiles) {
  const std::string transpose = "workload t(x: f32[1024,1024]) -> (y: f32[1024,1024]) { y[i,j] = x[j,i] }";
  const double tiled =
      Seconds(transpose,
              "split(t1.a0, [8])\nsplit(t1.a1, [8])\nreorder([t1.a0.0, t1.a1.0, t1.a0.1, t1.a1.1])\n"
              "bind(t1.a1.1, vector)\nbind(t1.a0.1, unroll)\n");
  EXPECT_LT(2 * tiled, Seconds(transpose, "split(t1.a1, [8])\nbind(t1.a1.1, vector)\n"));
}

TEST(AnalyticTest, StoresThatLieApartCostMoreThanLoads) {
  // Both fit the first cache.
  const std::string transpose = "workload t(x: f32[64,64]) -> (y: f32[64,64]) { y[i,j] = x[j,i] }";
  const double loads = Seconds(transpose, "split(t1.a1, [16])\nbind(t1.a1.1, vector)\n", Avx512Target());
  const double stores = Seconds(
      transpose, "reorder([t1.a1, t1.a0])\nsplit(t1.a0, [16])\nbind(t1.a0.1, vector)\n", Avx512Target());
  EXPECT_LT(1.1 * loads, stores);
}

TEST(AnalyticTest, PaddingOnTheFlyIsNoArithmetic) {
  const auto padded = [](const std::string& value) {
    return "workload p(x: f32[64,64]) -> (y: f32[66,64]) { y[i,j] = exp(" + value + ") }";
  };
  const std::string steps = "split(t1.a1, [16])\nbind(t1.a1.1, vector)\n";
  EXPECT_NEAR(Seconds(padded("select(1 <= i && i < 65, x[i-1,j], 0.0)"), steps) /
                  Seconds(padded("select(i < 64, x[i,j], 0.0)"), steps),
              1, 0.02);
}

TEST(AnalyticTest, ReductionsWantIndependentLanes) {
  const std::string sum = "workload s(x: f32[512,1000]) -> (y: f32[512]) { y[i] = sum[j:1000](x[i,j]) }";
  const double lanes = Seconds(sum, "rfactor(t1.r0, 32)\ncompute_at(t1.rf, t1.a0)\nbind(t1.rf.v, vector)\n");
  EXPECT_LT(4 * lanes, Seconds(sum, ""));
}

TEST(AnalyticTest, RowsWantTheirIntermediatesNear) {
  const std::string norm = R"(workload n(x: f32[4096,4096]) -> (y: f32[4096,4096]) {
    e[i,j]: f32[4096,4096] = x[i,j] * x[i,j]
    s[i]: f32[4096] = sum[j:4096](e[i,j])
    y[i,j] = e[i,j] / s[i]
  })";
  const std::string vectors =
      "split(t1.a1, [8])\nbind(t1.a1.1, vector)\nsplit(t3.a1, [8])\nbind(t3.a1.1, vector)\n";
  const double apart = Seconds(norm, vectors);
  const double together = Seconds(norm, "compute_at(t2, t3.a0)\ncompute_at(t1, t3.a0)\n" + vectors);
  EXPECT_LT(1.1 * together, apart);
}

TEST(AnalyticTest, LimitsAreRefusedWithTheirNumbers) {
  const auto refusal = [](const std::string& steps, const Target& target) {
    const auto seconds =
        EstimateSeconds(ScheduleOf(GemmText(1024, 1024, 1024), steps, target).function(), target);
    EXPECT_EQ(seconds.status().code(), absl::StatusCode::kResourceExhausted);
    return std::string(seconds.status().message());
  };
  EXPECT_THAT(refusal(TiledGemmSteps(14, 32, 4, 4, false, true), Avx2Target()),
              HasSubstr("block t2: 56 accumulators; the target has 16"));
  EXPECT_THAT(
      refusal(
          "split(t2.r0, [256])\nsplit(t2.a0, [256])\nreorder([t2.a0.0, t2.a1, t2.r0.0, t2.r0.1, t2.a0.1])\n"
          "bind(t2.r0.1, unroll)\nbind(t2.a0.1, unroll)\n",
          Avx2Target()),
      HasSubstr("unrolled instructions; expected at most 20000"));
  EXPECT_THAT(
      refusal(
          "split(t2.a0, [128])\nsplit(t2.a1, [128])\nreorder([t2.a0.0, t2.a1.0, t2.r0, t2.a0.1, t2.a1.1])\n"
          "cache_write(t2, t2.a1.0)\n",
          Avx2Target()),
      HasSubstr("accumulator t2.acc: 65536 bytes"));
}

}  // namespace
}  // namespace mycc
