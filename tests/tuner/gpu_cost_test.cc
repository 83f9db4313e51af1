// The order of the analytic model's estimates on a GPU, for pairs of schedules whose order is beyond doubt;
// and the limits, which are refused with their numbers.
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/schedules.h"
#include "tuner/cost/analytic.h"
#include "tuner/cost/features.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

Target H200() { return *ParseTarget("h200"); }

double SecondsOnGpu(const std::string& workload, const std::string& steps) {
  const auto seconds = EstimateSeconds(ScheduleOf(workload, steps, H200()).function(), H200());
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  return seconds.value_or(1e9);
}

const char kCopy[] = "workload r(x: f32[4096,4096]) -> (y: f32[4096,4096]) { y[i,j] = max(x[i,j], 0.0) }";

std::string Flat(int unroll, int threads, int lanes) {
  return absl::StrCat("fuse([t1.a0, t1.a1])\nsplit(t1.a0+a1, [", unroll, ", ", threads, ", ", lanes,
                      "])\nreorder([t1.a0+a1.2, t1.a0+a1.1])\nbind(t1.a0+a1.0, block)\n",
                      "bind(t1.a0+a1.2, thread)\nbind(t1.a0+a1.1, unroll)\nbind(t1.a0+a1.3, vector)\n");
}

TEST(GpuCostTest, ACopyTakesWhatItsBytesTake) {
  const double seconds = SecondsOnGpu(kCopy, Flat(4, 256, 4)), bytes = 2.0 * 4096 * 4096 * 4;
  EXPECT_GT(bytes / seconds, 2.5e12);
  EXPECT_LT(bytes / seconds, 4.4e12);
}

TEST(GpuCostTest, ThreadsSideBySideAndEnoughOfThem) {
  const double good = SecondsOnGpu(kCopy, Flat(4, 256, 4));
  // Each thread along a row: a sector for every four bytes.
  EXPECT_LT(3 * good, SecondsOnGpu(kCopy,
                                   "bind(t1.a1, serial)\nsplit(t1.a0, [128])\nbind(t1.a0.0, block)\n"
                                   "bind(t1.a0.1, thread)\n"));
  EXPECT_LT(2 * good, SecondsOnGpu(kCopy, Flat(1, 32, 1)));
}

TEST(GpuCostTest, TransposesWantBothSidesContiguous) {
  const std::string t = "workload t(x: f32[4096,4096]) -> (y: f32[4096,4096]) { y[i,j] = x[j,i] }";
  const auto shared = [&](int pad) {
    return SecondsOnGpu(
        t, absl::StrCat("split(t1.a0, [4, 8])\nsplit(t1.a1, [32])\n"
                        "reorder([t1.a0.0, t1.a1.0, t1.a0.2, t1.a1.1, t1.a0.1])\nbind(t1.a0.0, block)\n"
                        "bind(t1.a1.0, block)\ncache_read(t0, t1, t1.a1.0, shared)\nlayout(t0.r, ",
                        pad, ", 0)\nsplit(t0.r.a0, [8])\nreorder([t0.r.a0.1, t0.r.a1, t0.r.a0.0])\n",
                        "bind(t0.r.a0.1, thread)\nbind(t0.r.a1, thread)\nbind(t0.r.a0.0, unroll)\n"
                        "bind(t1.a0.2, thread)\nbind(t1.a1.1, thread)\nbind(t1.a0.1, unroll)\n"));
  };
  EXPECT_LT(1.5 * shared(1), SecondsOnGpu(t, Flat(1, 256, 1)));
  EXPECT_LT(1.2 * shared(1), shared(0));  // every thread of a warp in one bank
}

TEST(GpuCostTest, OneRowOnOneBlockLeavesTheOthersIdle) {
  const std::string sum = "workload s(x: f32[4000000]) -> (y: f32[]) { y[] = sum[j:4000000](x[j]) }";
  const double one = SecondsOnGpu(sum,
                                  "split(t1.r0, [4, 256, 4])\nreorder([t1.r0.2, t1.r0.0, t1.r0.1])\n"
                                  "bind(t1.r0.2, thread)\nbind(t1.r0.1, unroll)\nbind(t1.r0.3, vector)\n");
  const double many =
      SecondsOnGpu(sum,
                   "rfactor_runs(t1.r0, 16384)\nreorder([t1.rf.v, t1.rf.r0])\n"
                   "split(t1.rf.r0, [4, 256, 4])\nreorder([t1.rf.r0.2, t1.rf.r0.0, t1.rf.r0.1])\n"
                   "bind(t1.rf.v, block)\nbind(t1.rf.r0.2, thread)\nbind(t1.rf.r0.1, unroll)\n"
                   "bind(t1.rf.r0.3, vector)\nbind(t1.v, thread)\n");
  EXPECT_LT(10 * many, one);
}

// The blocks of a cluster_reduce divide the threads among them, so that more SMs have work.
TEST(GpuCostTest, FewRowsAreForManyBlocks) {
  const std::string sum = "workload s(x: f32[16,131072]) -> (y: f32[16]) { y[i] = sum[j:131072](x[i,j]) }";
  const auto seconds = [&](const std::string& join, int threads) {
    return SecondsOnGpu(sum,
                        absl::StrCat("bind(t1.a0, block)\n", join, "split(t1.r0, [4, ", threads,
                                     ", 4])\nreorder([t1.r0.2, t1.r0.0, t1.r0.1])\nbind(t1.r0.2, thread)\n"
                                     "bind(t1.r0.1, unroll)\nbind(t1.r0.3, vector)\n"));
  };
  const double one = seconds("", 512), eight = seconds("cluster_reduce(t1.a0, 8)\n", 8 * 512);
  EXPECT_LT(2 * eight, one);
  EXPECT_LT(eight, seconds("cluster_reduce(t1.a0, 2)\n", 2 * 512));
}

TEST(GpuCostTest, LimitsAreRefusedWithTheirNumbers) {
  const auto refusal = [](const std::string& steps) {
    const auto seconds = EstimateSeconds(ScheduleOf(kCopy, steps, H200()).function(), H200());
    EXPECT_EQ(seconds.status().code(), absl::StatusCode::kResourceExhausted);
    return std::string(seconds.status().message());
  };
  EXPECT_THAT(refusal("split(t1.a0, [64])\nbind(t1.a0.0, block)\ncache_read(t0, t1, t1.a0.0, shared)\n"),
              HasSubstr("1048576 bytes of shared memory; a block has at most 232448"));
  EXPECT_THAT(refusal("bind(t1.a0, block)\ncache_read(t0, t1, t1.a0, local)\nsplit(t0.r.a1, [8])\n"
                      "bind(t0.r.a1.1, thread)\n"),
              HasSubstr("about 538 registers a thread; at most 255"));
}

// A warpgroup that copies leaves its registers to two that compute: 232 a thread, more than the block's
// threads have on average.
TEST(GpuCostTest, WarpgroupsThatComputeHaveMoreRegisters) {
  const auto limits = [](int columns) {
    const std::string steps = absl::StrCat(
        "split(t2.a0, [256])\nsplit(t2.a1, [", columns,
        "])\nsplit(t2.r0, [64])\nreorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
        "fuse([t2.a0.0, t2.a1.0])\nbind(t2.a0.0+a1.0, block)\ncache_write(t2, "
        "t2.a0.0+a1.0)\nreverse_inline(t3)\n"
        "stage_shared(t2, t0, t2.r0.0, shared)\nstage_shared(t2, t1, t2.r0.0, shared)\nlayout(t0.s, 0, 128)\n"
        "layout(t1.s, 0, 128)\ntensorize_tile(t2.a0.1, wgmma.bf16, 2, 1)\npipeline(t2.r0.0, bulk, 2)\n");
    const std::string workload =
        R"(workload g(a: bf16[2304,4096], b: bf16[2304,4096]) -> (c: bf16[2304,2304]) {
  s[i,j]: f32[2304,2304] = sum[k:4096](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })";
    return EstimateSeconds(ScheduleOf(workload, steps, H200()).function(), H200()).status();
  };
  EXPECT_TRUE(limits(192).ok()) << limits(192);
  EXPECT_THAT(limits(256).message(), HasSubstr("at most 232 are there"));
}

// A store through shared memory needs registers of its own, which a thread with many sums does not have.
TEST(GpuCostTest, StoresThroughSharedMemoryNeedRegisters) {
  const auto limits = [](int columns, const std::string& store) {
    const std::string steps = absl::StrCat(
        "split(t2.a0, [128])\nsplit(t2.a1, [", columns,
        "])\nsplit(t2.r0, [64])\nreorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
        "fuse([t2.a0.0, t2.a1.0])\nbind(t2.a0.0+a1.0, block)\ncache_write(t2, t2.a0.0+a1.0)\n"
        "reverse_inline(t3)\nstage_shared(t2, t0, t2.r0.0, shared)\n"
        "stage_shared(t2, t1, t2.r0.0, shared)\nlayout(t0.s, 0, 128)\nlayout(t1.s, 0, 128)\n"
        "tensorize_tile(t2.a0.1, wgmma.bf16, 1, 1)\npipeline(t2.r0.0, bulk, 3)\n",
        store);
    const std::string workload =
        R"(workload g(a: bf16[3840,4096], b: bf16[3840,4096]) -> (c: bf16[3840,3840]) {
  s[i,j]: f32[3840,3840] = sum[k:4096](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })";
    return EstimateSeconds(ScheduleOf(workload, steps, H200()).function(), H200()).status();
  };
  const std::string through_shared = "stage_write(t2.w, t2.a0.0+a1.0, shared)\nlayout(t2.w.s, 0, 64)\n";
  EXPECT_TRUE(limits(192, "").ok()) << limits(192, "");
  EXPECT_TRUE(limits(128, through_shared).ok()) << limits(128, through_shared);
  EXPECT_THAT(limits(160, through_shared).message(), HasSubstr("about 266 registers a thread; at most 255"));
}

// Sums of few bits have partial sums beside them, which are gone when the tile is stored.
TEST(GpuCostTest, DefaultsOfLargeProductsHaveTheRegisters) {
  for (const char* type : {"f8e4m3", "bf16", "f16"}) {
    const Workload workload = CanonicalWorkload(
        absl::Substitute(R"(workload g(a: $0[8192,8192], b: $0[8192,8192]) -> (c: bf16[8192,8192]) {
  s[i,j]: f32[8192,8192] = sum[k:8192](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })",
                         type));
    for (const Sketch& sketch : GenerateSketches(workload, H200())) {
      const Trace trace = sketch.instantiate(sketch.default_choice).value();
      const Schedule schedule = Replay(workload, H200(), trace).value();
      const auto seconds = EstimateSeconds(schedule.function(), H200());
      EXPECT_TRUE(seconds.ok()) << type << " " << sketch.name << ": " << seconds.status();
    }
  }
}

TEST(GpuCostTest, FeaturesAreFiniteAndTellLaunchesApart) {
  const Machine machine(H200());
  const auto features = [&](const std::string& steps) {
    const Schedule schedule = ScheduleOf(kCopy, steps, H200());
    const FunctionNest nest = AnalyzeNest(schedule.function());
    return FunctionFeatures(nest, EstimateCost(nest, machine), machine);
  };
  const Features good = features(Flat(4, 256, 4)), poor = features(Flat(1, 64, 1));
  for (size_t i = 0; i < good.size(); ++i)
    EXPECT_TRUE(std::isfinite(good[i]) && std::isfinite(poor[i])) << FunctionFeatureSlots()[i].name;
  const auto at = [](const Features& features, const std::string& name) {
    for (size_t i = 0; i < features.size(); ++i) {
      if (FunctionFeatureSlots()[i].name == name) return features[i];
    }
    ADD_FAILURE() << "no slot " << name;
    return 0.0f;
  };
  for (const char* name : {"main.gpu_blocks", "main.gpu_threads", "main.gpu_in_flight"})
    EXPECT_NE(at(good, name), at(poor, name)) << name;
}

// A product by warpgroups: what is asked of its schedule, in slots of their own.
TEST(GpuCostTest, StagesTilesLayoutsAndClustersHaveSlots) {
  const Machine machine(H200());
  const auto value = [&](int columns, int stages, int swizzle, const std::string& more,
                         const std::string& name) {
    const std::string steps = absl::StrCat(
        "split(t2.a0, [128])\nsplit(t2.a1, [", columns,
        "])\nsplit(t2.r0, [64])\nreorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
        "fuse([t2.a0.0, t2.a1.0])\nbind(t2.a0.0+a1.0, block)\ncache_write(t2, "
        "t2.a0.0+a1.0)\nreverse_inline(t3)\n"
        "stage_shared(t2, t0, t2.r0.0, shared)\nstage_shared(t2, t1, t2.r0.0, shared)\nlayout(t0.s, 0, ",
        swizzle, ")\nlayout(t1.s, 0, ", swizzle,
        ")\ntensorize_tile(t2.a0.1, wgmma.bf16, 2, 1)\npipeline(t2.r0.0, bulk, ", stages, ")\n", more);
    const std::string workload =
        R"(workload g(a: bf16[2048,4096], b: bf16[2048,4096]) -> (c: bf16[2048,2048]) {
  s[i,j]: f32[2048,2048] = sum[k:4096](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })";
    const Schedule schedule = ScheduleOf(workload, steps, H200());
    const FunctionNest nest = AnalyzeNest(schedule.function());
    const Features features = FunctionFeatures(nest, EstimateCost(nest, machine), machine);
    for (size_t i = 0; i < features.size(); ++i) {
      if (FunctionFeatureSlots()[i].name == name) return static_cast<double>(features[i]);
    }
    ADD_FAILURE() << "no slot " << name;
    return 0.0;
  };
  EXPECT_LT(value(128, 3, 128, "", "all.stages"), value(128, 4, 128, "", "all.stages"));
  EXPECT_EQ(value(128, 3, 128, "", "main.stages"), 3);
  EXPECT_EQ(value(128, 4, 128, "", "main.stages"), 4);
  EXPECT_EQ(value(128, 4, 128, "", "main.bulk_copies"), 1);
  for (const int columns : {64, 128}) {
    double most = 0;
    for (const char* statement : {"main", "second", "third"})
      most = std::max(most, value(columns, 3, 128, "", absl::StrCat(statement, ".wgmma")) *
                                value(columns, 3, 128, "", absl::StrCat(statement, ".tile_columns")));
    EXPECT_EQ(most, std::log2(columns));
  }
  EXPECT_GT(value(128, 3, 128, "", "all.warp_rows"), 0);
  EXPECT_EQ(value(128, 3, 128, "", "all.cluster"), 0);
}

}  // namespace
}  // namespace mycc
