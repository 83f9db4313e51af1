// Regions of sums in tile registers: what begins and ends them, their steps and configurations.
#include "absl/strings/str_cat.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Products of bf16 by blocks of 32 x 32 sums, `depth` elements at a time.
std::string TileSteps(int depth, const std::string& more = "") {
  return absl::StrCat(
      "split(t2.a0, [32])\nsplit(t2.r0, [", depth / 2,
      ", 2])\nreorder([t2.a0.0, t2.r0.0, t2.r0.1, t2.a0.1, t2.a1, t2.r0.2])\n"
      "cache_read(t1, t2, root, packed)\npack(t1.r, [0/2, 1, 0%2])\ncache_write(t2, t2.a0.0)\n"
      "bind(t2.r0.1, unroll)\ntensorize(t2.r0.0, amx.bf16)\n",
      more);
}

std::string TileProduct(int m, int k, const std::string& more = "", const std::string& result = "c") {
  return absl::StrCat("workload w(a: bf16[", m, ",", k, "], b: const bf16[", k, ",32]) -> (", result,
                      ": f32[", m, ",32]) {\n  c[i,j]", more.empty() ? "" : absl::StrCat(": f32[", m, ",32]"),
                      " = sum[k:", k, "](f32(a[i,k]) * f32(b[k,j]))\n", more, "}");
}

// Lowers the trace for a CPU with tiles, and checks that the meaning is the workload's.
Function TiledKernel(const std::string& workload, const std::string& steps) {
  const auto target =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  const auto trace = ParseTrace(absl::StrCat("v1\n", steps));
  EXPECT_TRUE(target.ok() && trace.ok()) << target.status() << trace.status();
  const Workload canonical = CanonicalWorkload(workload);
  const auto schedule = Replay(canonical, *target, *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto lowered = Lower(schedule->function(), *target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const absl::Status same = CheckFunction(canonical, WholeFunction(*lowered));
  EXPECT_TRUE(same.ok()) << same.message();
  return lowered->kernel;
}

// Eight rows are left over. Their tiles have another configuration, which runs less often.
TEST(PlaceTilesTest, SumsStayInRegisters) {
  EXPECT_TRUE(MatchesGolden("passes/tiles", PrintFunction(TiledKernel(TileProduct(72, 64), TileSteps(32)))));
}

// The loops of a move are not emitted, so that they do not count as code.
TEST(PlaceTilesTest, ManyRegionsAreLittleCode) {
  const std::string text =
      PrintFunction(TiledKernel(TileProduct(192, 64), TileSteps(32, "bind(t2.a0.0, unroll)\n")));
  EXPECT_THAT(text, HasSubstr("unroll t2.a0.0 in 6"));
}

// Steps of one region are equally deep, so that it needs one configuration.
TEST(PlaceTilesTest, StepsAreEquallyDeep) {
  const std::string text = PrintFunction(
      TiledKernel("workload w(a: bf16[32,2,80], b: const bf16[2,80,32]) -> (c: f32[32,32]) {\n"
                  "  c[i,j] = sum[r:2, k:80](f32(a[i,r,k]) * f32(b[r,k,j]))\n}",
                  "split(t2.a0, [32])\nsplit(t2.r1, [16, 2])\n"
                  "reorder([t2.a0.0, t2.r0, t2.r1.0, t2.r1.1, t2.a0.1, t2.a1, t2.r1.2])\n"
                  "cache_read(t1, t2, root, packed)\npack(t1.r, [0, 1/2, 2, 1%2])\ncache_write(t2, t2.a0.0)\n"
                  "bind(t2.r1.1, unroll)\ntensorize(t2.r1.0, amx.bf16)\n"));
  EXPECT_THAT(text, HasSubstr("sums in tiles, steps of 64 bytes\n"));
  EXPECT_THAT(text, HasSubstr("mma amx.bf16 32x32x32 in groups of 2"));
  EXPECT_THAT(text, HasSubstr("mma amx.bf16 32x32x16 in groups of 2"));
  EXPECT_THAT(text, Not(HasSubstr("fixed tiles")));
}

// A rest of three elements, which is no whole group, reads copies. They are the same in all iterations.
TEST(PlaceTilesTest, AStepOfBrokenGroupsHasFixedTiles) {
  const std::string text = PrintFunction(
      TiledKernel("workload w(a: i8[32,35], b: const i8[35,32]) -> (c: i32[32,32]) {\n"
                  "  c[i,j] = sum[k:35](i32(a[i,k]) * i32(b[k,j]))\n}",
                  "split(t2.a0, [32])\nsplit(t2.r0, [9, 4])\n"
                  "reorder([t2.a0.0, t2.r0.0, t2.r0.1, t2.a0.1, t2.a1, t2.r0.2])\n"
                  "cache_read(t1, t2, root, packed)\npack(t1.r, [0/4, 1, 0%4])\ncache_write(t2, t2.a0.0)\n"
                  "bind(t2.r0.1, unroll)\ntensorize(t2.r0.0, amx.i8)\n"));
  EXPECT_THAT(text, HasSubstr("sums in tiles, steps of 4 bytes\n"));
  EXPECT_THAT(text, testing::ContainsRegex("mma amx.i8 32x32x3 .* of fixed tiles\n"));
}

// Another statement reads the sums, so they end in the accumulator.
TEST(PlaceTilesTest, SumsThatAreReadEndInTheAccumulator) {
  const Function kernel = TiledKernel(TileProduct(32, 64, "  y[i,j] = max(c[i,j], 0.0)\n", "y"),
                                      TileSteps(32, "reverse_inline(t3)\n"));
  int regions = 0;
  VisitEach<TileRegion>(kernel.body, [&](const TileRegion& region) {
    ++regions;
    EXPECT_THAT(PrintStmt(region.begin), HasSubstr("zero tiles of t2.acc[0,0]"));
    EXPECT_THAT(PrintStmt(region.end), HasSubstr("store tiles to t2.acc[0,0]"));
  });
  EXPECT_EQ(regions, 1) << PrintFunction(kernel);
}

// A part of the depth at a time: the first begins at zero, the others at the sums so far.
TEST(PlaceTilesTest, PartsOfTheDepthBeginAtTheSumsSoFar) {
  const Function kernel =
      TiledKernel(TileProduct(32, 128),
                  "split(t2.r0, [2, 16, 2])\nreorder([t2.r0.0, t2.r0.1, t2.r0.2, t2.a0, t2.a1, t2.r0.3])\n"
                  "cache_read(t1, t2, root, packed)\npack(t1.r, [0/2, 1, 0%2])\ncache_write(t2, t2.r0.0)\n"
                  "bind(t2.r0.2, unroll)\ntensorize(t2.r0.1, amx.bf16)\n");
  int choices = 0;
  VisitEach<TileRegion>(kernel.body, [&](const TileRegion& region) {
    choices += region.begin->kind == StmtKind::kIf;
    EXPECT_THAT(PrintStmt(region.begin), HasSubstr("zero tiles of t2.acc[0,0]"));
    EXPECT_THAT(PrintStmt(region.begin), HasSubstr("load tiles from t2[0,0]"));
  });
  EXPECT_EQ(choices, 1) << PrintFunction(kernel);
}

// Only products read the rounded rows, and these treat subnormal numbers as zero.
TEST(PlaceLocalsTest, RoundingMayFlushWhatProductsRead) {
  const std::string steps =
      "split(t3.a0, [32])\nsplit(t3.r0, [16, 2])\nreorder([t3.a0.0, t3.r0.0, t3.r0.1, t3.a0.1, t3.a1, "
      "t3.r0.2])\n"
      "compute_at(t2, t3.a0.0)\ncache_read(t1, t3, root, packed)\npack(t1.r, [0/2, 1, 0%2])\n"
      "cache_write(t3, t3.a0.0)\nbind(t3.r0.1, unroll)\ntensorize(t3.r0.0, amx.bf16)\n";
  const auto rounded = [](const char* outputs, const char* more) {
    return absl::StrCat("workload w(x: f32[32,64], b: const bf16[64,32]) -> (c: f32[32,32]", outputs,
                        ") {\n  p[i,k]: bf16[32,64] = bf16(x[i,k] * 2.0)\n"
                        "  c[i,j] = sum[k:64](f32(p[i,k]) * f32(b[k,j]))\n",
                        more, "}");
  };
  EXPECT_THAT(PrintFunction(TiledKernel(rounded("", ""), steps)),
              HasSubstr("bf16(t0[t2.a0,t2.a1] * 2.0), flushing"));
  EXPECT_THAT(PrintFunction(TiledKernel(
                  rounded(", y: f32[32,64]", "  y[i,k] = f32(p[i,k])\n"),
                  steps.substr(0, steps.find("compute_at")) + steps.substr(steps.find("cache_read")))),
              Not(HasSubstr("flushing")));
}

}  // namespace
}  // namespace mycc
