// Every pass on its own: a golden of what it makes of a small example, the verifier's and the interpreter's
// word that the meaning is unchanged, and the same pointer where there is nothing to do.
#include "codegen/passes/passes.h"

#include "absl/strings/str_cat.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr char kGemm[] = R"(workload gemm(a: f32[13,10], b: f32[10,19]) -> (c: f32[13,19]) {
  c[i,j] = sum[k:10](a[i,k] * b[k,j])
})";

constexpr char kRowSum[] = R"(workload rows(x: f32[5,70]) -> (s: f32[5]) {
  s[i] = sum[j:70](x[i,j])
})";

constexpr char kPad[] = R"(workload pad(x: f32[6,20]) -> (p: f32[8,22]) {
  p[i,j] = select(1 <= i && i < 7 && 1 <= j && j < 21, x[i-1,j-1], 0.0)
})";

Function Scheduled(const std::string& workload, const std::string& steps) {
  const auto trace = ParseTrace(absl::StrCat("v1\n", steps));
  EXPECT_TRUE(trace.ok()) << trace.status();
  const auto schedule = Replay(CanonicalWorkload(workload), TestTarget(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule->function();
}

using Pass = std::function<absl::StatusOr<Stmt>(const Stmt&)>;

Pass Plain(Stmt (*pass)(const Stmt&)) {
  return [pass](const Stmt& body) -> absl::StatusOr<Stmt> { return pass(body); };
}
Pass ForTarget(Stmt (*pass)(const Stmt&, const Target&)) {
  return [pass](const Stmt& body) -> absl::StatusOr<Stmt> { return pass(body, TestTarget()); };
}

const std::pair<const char*, Pass> kPasses[] = {
    {"lower_blocks", LowerBlocks},
    {"unfuse_loops", Plain(UnfuseLoops)},
    {"partition_loops", Plain(PartitionLoops)},
    {"simplify", Plain(SimplifyStmts)},
    {"fit_locals", ForTarget(FitLocals)},
    {"tensorize", [](const Stmt& body) { return TensorizeLoops(body, TestTarget()); }},
    {"hoist_conditions", Plain(HoistConditions)},
    {"split_reductions", ForTarget(SplitReductions)},
    {"choose_lane_forms", ForTarget(ChooseLaneForms)},
    {"place_locals", Plain(PlaceLocals)},
    {"place_tiles", Plain(PlaceTiles)},
    {"place_fetches", Plain(PlaceFetches)},
    {"place_bypasses", Plain(PlaceBypasses)},
};

// Runs the passes in order up to `last`, checking the meaning after each; returns the text after `last`.
std::string After(const std::string& last, const std::string& workload, const std::string& steps) {
  const Workload canonical = CanonicalWorkload(workload);
  Function function = Scheduled(workload, steps);
  for (const auto& [name, pass] : kPasses) {
    const auto body = pass(function.body);
    if (!body.ok()) return std::string(body.status().message());
    const bool changed = *body != function.body;
    function.body = *body;
    if (changed) {
      const absl::Status verified = VerifyFunction(function);
      EXPECT_TRUE(verified.ok()) << name << ": " << verified.message() << "\n" << PrintFunction(function);
      const absl::Status same = CheckFunction(canonical, function);
      EXPECT_TRUE(same.ok()) << name << ": " << same.message() << "\n" << PrintFunction(function);
    }
    const auto again = pass(function.body);
    EXPECT_TRUE(again.ok() && *again == function.body) << name << " has something to do the second time:\n"
                                                       << PrintStmt(*again);
    if (name == last) break;
  }
  return PrintFunction(function);
}

void Check(const std::string& golden, const std::string& last, const std::string& workload,
           const std::string& steps) {
  EXPECT_TRUE(MatchesGolden("passes/" + golden, After(last, workload, steps)));
}

constexpr char kTiledGemm[] =
    "split(t2.a0, [3, 4])\nsplit(t2.a1, [8])\nsplit(t2.r0, [4])\n"
    "reorder([t2.a0.0, t2.a1.0, t2.a0.1, t2.r0.0, t2.r0.1, t2.a0.2, t2.a1.1])\n";

TEST(PassesTest, LowerBlocksPutsTheInitialisationAboveTheReduction) {
  Check("lower_blocks", "lower_blocks", kGemm, kTiledGemm);
}

TEST(PassesTest, LowerBlocksOfArgmax) {
  Check("lower_blocks_argmax", "lower_blocks",
        "workload w(x: f32[4,9]) -> (y: i32[4]) {\n  y[i] = argmax[j:9](x[i,j])\n}",
        "split(t1.r0, [4])\nreorder([t1.r0.1, t1.r0.0])\n");
}

TEST(PassesTest, UnfuseLoopsGivesEachPartALoop) {
  Check("unfuse_loops", "unfuse_loops", kGemm, absl::StrCat(kTiledGemm, "fuse([t2.a0.0, t2.a1.0])\n"));
}

TEST(PassesTest, PartitionLoopsMakesTails) { Check("partition_loops", "simplify", kGemm, kTiledGemm); }

TEST(PassesTest, PartitionLoopsKeepsParallelLoopsWhole) {
  Check(
      "partition_parallel", "simplify", kGemm,
      absl::StrCat(kTiledGemm, "bind(t2.a0.0, parallel)\nbind(t2.a1.0, parallel)\nbind(t2.a1.1, vector)\n"));
}

TEST(PassesTest, PartitionLoopsCutsSmallLoopsAtSelects) {
  Check("partition_selects", "simplify", kPad, "split(t1.a1, [8])\nbind(t1.a1.1, vector)\n");
}

TEST(PassesTest, FitLocalsShrinksTailsToVectors) {
  Check("fit_locals", "fit_locals", kGemm, absl::StrCat(kTiledGemm, "cache_write(t2, t2.a0.1)\n"));
}

TEST(PassesTest, TensorizeMakesOneStatementOfANest) {
  Check("tensorize", "tensorize", kGemm,
        absl::StrCat(kTiledGemm, "cache_write(t2, t2.a0.1)\ntensorize(t2.r0.1, fma.f32)\n"));
}

TEST(PassesTest, TensorizeTakesTheInnermostReductionAsDepthAndLoopsOverALongOne) {
  Check("tensorize_depth", "tensorize",
        "workload w(x: f32[6,30,3], w: f32[3,30,8]) -> (y: f32[6,8]) {\n  y[i,j] = sum[r:3, k:30](x[i,k,r] * "
        "w[r,k,j])\n}",
        "reorder([t2.r0, t2.r1, t2.a0, t2.a1])\nsplit(t2.r0, [3])\ncache_write(t2, "
        "t2.r0.0)\ntensorize(t2.r0.1, fma.f32)\n");
}

TEST(PassesTest, TensorizeUnrollsRowsThatAreNotEquallyFarApart) {
  Check("tensorize_rows", "tensorize",
        "workload w(x: f32[5,7,4], w: f32[4,8]) -> (y: f32[5,6,8]) {\n  y[i,j,k] = sum[c:4](x[i,j+1,c] * "
        "w[c,k])\n}",
        "fuse([t2.a0, t2.a1])\nsplit(t2.a0+a1, [4])\nreorder([t2.a0+a1.0, t2.r0, t2.a0+a1.1, "
        "t2.a2])\ncache_write(t2, t2.a0+a1.0)\n"
        "tensorize(t2.r0, fma.f32)\n");
}

// More taps beyond the border than partitioning makes cases of.
TEST(PassesTest, TensorizeLeavesAConditionOutsideThatItsLoopsIgnore) {
  Check("tensorize_condition", "tensorize",
        "workload w(x: f32[20,4], w: f32[11,4,8]) -> (y: f32[20,8]) {\n"
        "  p[i,c]: f32[30,4] = select(5 <= i && i < 25, x[i-5,c], 0.0)\n"
        "  y[i,k] = sum[r:11, c:4](p[i+r,c] * w[r,c,k])\n}",
        "skip_zeros(t3, t2, 0)\nreorder([t3.a0, t3.r0, t3.r1, t3.a1])\ncache_write(t3, t3.a0)\n"
        "tensorize(t3.r1, fma.f32)\n");
}

// The primitive looked at the marked block alone: what compute_at has moved into the nest is no product of
// the instruction's types.
TEST(PassesTest, TensorizeLeavesANestWithOtherComputations) {
  Check("tensorize_chain", "tensorize",
        "workload w(x: i32[6,2], a: i32[30,2], b: f32[30,8]) -> (c: f32[6,8]) {\n"
        "  t[i,k]: i32[6,30] = sum[q:2](x[i,q] * a[k,q])\n"
        "  u[i,k]: f32[6,30] = f32(t[i,k])\n"
        "  c[i,j] = sum[k:30](u[i,k] * b[k,j])\n}",
        "split(t5.a0, [3])\nsplit(t5.r0, [3])\nreorder([t5.a0.0, t5.r0.0, t5.a0.1, t5.a1, t5.r0.1])\n"
        "cache_write(t5, t5.a0.0)\n"
        "tensorize(t5.r0.0, fma.f32)\ncompute_at(t4, t5.r0.0)\ncompute_at(t3, t5.r0.0)\n");
}

TEST(PassesTest, HoistConditionsOutOfTheLoopsTheyIgnore) {
  Check("hoist_conditions", "hoist_conditions", kGemm,
        "split(t2.r0, [5])\nsplit(t2.a1, [8])\nreorder([t2.r0.0, t2.a0, t2.a1.0, t2.r0.1, "
        "t2.a1.1])\ncache_write(t2, t2.a1.0)\n");
}

// Padding that is inlined into its window: tiles of the border have a copy of their own, one for both rows at
// an edge, in which the row's condition is asked once for all of its elements.
constexpr char kWindow[] = R"(workload w(x: f32[9,9,8], w: f32[5,5,8]) -> (y: f32[9,9,8]) {
  y[i,j,c] = sum[r:5, s:5](select(2 <= i+r && i+r < 11 && 2 <= j+s && j+s < 11, x[i+r-2,j+s-2,c], 0.0) * w[r,s,c])
})";
constexpr char kTiledWindow[] =
    "split(t2.a1, [3])\nreorder([t2.a0, t2.a1.0, t2.r0, t2.r1, t2.a1.1, t2.a2])\nbind(t2.a0, parallel)\n"
    "bind(t2.a1.0, parallel)\ncache_write(t2, t2.a1.0)\nbind(t2.r1, unroll)\nbind(t2.a1.1, unroll)\n"
    "bind(t2.a2, vector)\n";

TEST(PassesTest, PartitionLoopsKeepsTheBorderOfAWindowApart) {
  Check("partition_window", "simplify", kWindow, kTiledWindow);
}

TEST(PassesTest, HoistConditionsOfPaddingInAReduction) {
  Check("hoist_padding", "hoist_conditions", kWindow, kTiledWindow);
}

TEST(PassesTest, SplitReductionsKeepsLanesApart) {
  Check("split_reductions", "split_reductions", kRowSum, "split(t1.r0, [16])\nbind(t1.r0.1, vector)\n");
}

// The loop around the lanes of a reduction, and the one along the depth of an instruction, are made anew.
// Loads along the unrolled loop, stores along it, and a reduction.
TEST(PassesTest, LoopsOfLanesHaveForms) {
  Check("lane_forms", "choose_lane_forms",
        R"(workload w(x: f32[8,16]) -> (y: f32[16,8], z: f32[8,2], s: f32[8]) {
  y[i,j] = x[j,i]
  z[i,j] = x[j,i] + 1.0
  s[i] = max[j:16](x[i,j])
})",
        "bind(t1.a0, unroll)\nbind(t1.a1, vector)\n"
        "reorder([t2.a1, t2.a0])\nbind(t2.a1, unroll)\nbind(t2.a0, vector)\nbind(t3.r0, vector)\n");
}

// Up to eight vectors are straight-line code. Lanes are as many as the widest numbers allow; long code is one
// vector at a time.
TEST(PassesTest, LoopsOfLanesHaveVectors) {
  Check("lane_vectors", "choose_lane_forms",
        R"(workload w(x: f32[250], u: u8[250]) -> (a: f32[250], b: f32[50], c: u8[250], d: f32[250]) {
  a[i] = x[i] * 2.0
  b[i] = x[i]
  c[i] = u[i] + u8(1)
  d[i] = x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i] * x[i]
})",
        "bind(t2.a0, vector)\nbind(t3.a0, vector)\nbind(t4.a0, vector)\nbind(t5.a0, vector)\n");
}

// The outer loop leaves one iteration over, which has no lanes: there the inner loop has them.
TEST(PassesTest, LoopsOfLanesInsideOfLanesHaveForms) {
  EXPECT_THAT(After("choose_lane_forms", R"(workload w(x: f32[17,24]) -> (y: f32[17]) {
  m[i]: f32[17] = max[j:24](x[i,j])
  y[i] = m[i] * 2.0
})",
                    "bind(t2.a0, vector)\ncompute_at(t1, t2.a0)\nbind(t1.r0, vector)\n"),
              ::testing::HasSubstr("vector t1.r0 in 24 reducing lanes"));
}

// Loops over a register tile have no run-time index, but those that a team's threads divide keep theirs.
TEST(PassesTest, LoopsOverTilesAreUnrolled) {
  const auto after = [](const std::string& kind) {
    return After(
        "choose_lane_forms", kGemm,
        absl::StrCat(
            "split(t2.a0, [4])\nreorder([t2.a0.0, t2.a0.1, t2.r0, t2.a1])\ncache_write(t2, t2.a0.0)\n"
            "bind(t2.a0.1, ",
            kind, ")\n"));
  };
  EXPECT_THAT(after("serial"), ::testing::HasSubstr("unroll t2.a0.1 in 4"));
  EXPECT_THAT(after("parallel"), ::testing::HasSubstr("parallel t2.a0.1 in 4"));
}

// Rows of a tile are whole vectors; of a tail's rows three elements are read.
TEST(PassesTest, TilesKnowTheColumnsThatAreRead) {
  EXPECT_THAT(After("place_locals", kGemm,
                    absl::StrCat(kTiledGemm, "cache_write(t2, t2.a0.1)\ntensorize(t2.r0.1, fma.f32)\n")),
              ::testing::HasSubstr("alloc t2.acc.p1: f32[4,8] accumulator, 3 columns read\n"));
}

// The mark may stand on any of the loops that are executed as one.
TEST(PassesTest, GroupsThatAreTurnedBypassTheCaches) {
  EXPECT_THAT(
      After("place_bypasses", "workload w(x: f16[64,32]) -> (y: f16[16,64,2]) { y[u,v,e] = x[v, 2 * u + e] }",
            "reorder([t1.a0, t1.a2, t1.a1])\nbind(t1.a0, unroll)\nbind(t1.a2, unroll)\nbind(t1.a1, vector)\n"
            "nontemporal(t1.a1)\n"),
      ::testing::HasSubstr("past the caches t1\n    unroll t1.a0 in 16 turning groups"));
}

// An element that is read twice is fetched once, a row of constants and what was computed here are not.
TEST(PassesTest, LanesFetchTheNextRow) {
  Check("fetches", "place_fetches",
        R"(workload w(x: f32[40,64], g: f32[64]) -> (y: f32[40,64]) {
  s[i]: f32[40] = sum[j:64](x[i,j])
  y[i,j] = (x[i,j] - s[i]) * (x[i,j] + s[i]) * g[j]
})",
        "compute_at(t2, t3.a0)\nsplit(t3.a1, [2, 16])\nfetch_next(t3.a1.0)\nbind(t3.a1.2, vector)\n"
        "bind(t3.a1.1, unroll)\nbind(t3.a0, parallel)\n");
}

// The least stride of the loops around, and none of an unrolled one, which is a constant. Loops around the
// threads' do not count as loops with the mark.
TEST(PassesTest, LanesFetchByTheLeastStrideOfLoopsAround) {
  constexpr char kDoubled[] =
      "workload w(x: f32[2,8,4,64]) -> (y: f32[2,8,4,64]) { y[h,i,k,j] = x[h,i,k,j] * 2.0 }";
  EXPECT_THAT(
      After("place_fetches", kDoubled, "bind(t1.a2, unroll)\nfetch_next(t1.a2)\nbind(t1.a3, vector)\n"),
      ::testing::HasSubstr(", fetching t0[t1.a0,t1.a1,t1.a2,t1.a3] 256 elements ahead"));
  EXPECT_THAT(
      After("place_fetches", kDoubled, "bind(t1.a2, unroll)\nfetch_next(t1.a3)\nbind(t1.a3, vector)\n"),
      ::testing::HasSubstr(" 256 elements ahead"));
  EXPECT_THAT(After("place_fetches", kDoubled, "fetch_next(t1.a3)\nbind(t1.a3, vector)\n"),
              ::testing::HasSubstr(" 64 elements ahead"));
  EXPECT_THAT(
      After("place_fetches", kDoubled, "fetch_next(t1.a1)\nbind(t1.a1, parallel)\nbind(t1.a3, vector)\n"),
      ::testing::Not(::testing::HasSubstr("fetching")));
}

// Rows of an odd length, an output that is read again, and elements that are stored one by one stay in the
// caches.
TEST(PassesTest, StoresOfVectorsBypassTheCaches) {
  Check(
      "bypasses", "place_bypasses",
      R"(workload w(x: f32[40,64]) -> (y: f32[40,64], z: f32[40,64], o: f32[40,65], r: f32[40,24], s: f32[40]) {
  y[i,j] = x[i,j] * 2.0
  z[i,j] = y[i,j] + 1.0
  o[i,j] = f32(i + j)
  r[i,j] = x[i,j] + 3.0
  s[i] = x[i,0]
})",
      "merge(t1.a0, t2.a0)\nmerge(t1.a1, t2.a1)\nsplit(t1.a1, [16])\nnontemporal(t1.a0)\n"
      "bind(t1.a1.1, vector)\nbind(t1.a0, parallel)\n"
      "split(t3.a1, [16])\nnontemporal(t3.a0)\nbind(t3.a1.1, vector)\n"
      "split(t4.a1, [8])\nbind(t4.a0, parallel)\nnontemporal(t4.a1.0)\nbind(t4.a1.1, vector)\n"
      "nontemporal(t5.a0)\n");
}

// A loop that is executed as one with the loop around it leaves its mark to that one.
TEST(PassesTest, MarksOfInnerParallelLoopsCount) {
  const std::string text =
      After("place_bypasses", "workload w(x: f32[4,8,16]) -> (y: f32[4,8,16]) { y[i,j,k] = x[i,j,k] * 2.0 }",
            "bind(t1.a0, parallel)\nbind(t1.a1, parallel)\nnontemporal(t1.a1)\nbind(t1.a2, vector)\n");
  EXPECT_THAT(text, ::testing::HasSubstr("past the caches t1\n    parallel t1.a0 in 4\n"));
  EXPECT_THAT(text, ::testing::HasSubstr(", 16 lanes past the caches"));
}

TEST(PassesTest, NewLoopsHaveTheMarksOfTheOld) {
  const auto marked = ::testing::HasSubstr(" fetching for the next iteration around");
  EXPECT_THAT(
      After("split_reductions", kRowSum, "split(t1.r0, [16])\nbind(t1.r0.1, vector)\nfetch_next(t1.r0.0)\n"),
      marked);
  EXPECT_THAT(After("tensorize", R"(workload gemm(a: f32[12,64], b: f32[64,16]) -> (c: f32[12,16]) {
  c[i,j] = sum[k:64](a[i,k] * b[k,j])
})",
                    "split(t2.a0, [6])\nreorder([t2.a0.0, t2.r0, t2.a0.1, t2.a1])\ncache_write(t2, t2.a0.0)\n"
                    "tensorize(t2.r0, fma.f32)\nfetch_next(t2.r0)\n"),
              marked);
}

TEST(PassesTest, WhatHasNoGuardStaysAsItIs) {
  const Function function = Scheduled(kGemm, "");
  const auto lowered = LowerBlocks(function.body);
  ASSERT_TRUE(lowered.ok());
  for (const auto& [name, pass] : kPasses) {
    const auto after = pass(*lowered);
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(*after, *lowered) << name;
  }
}

TEST(PassesTest, PartitionLoopsBoundsItsCopies) {
  // Six overshooting splits inside each other: 2^6 combinations of tails, each with its own copy of the
  // block, would be too many.
  const std::string text =
      "workload w(x: f32[7,7,7,7,7,7]) -> (y: f32[7,7,7,7,7,7]) {\n  y[a,b,c,d,e,f] = x[a,b,c,d,e,f] + "
      "1.0\n}";
  std::string steps, order;
  for (int d = 0; d < 6; ++d) absl::StrAppend(&steps, "split(t1.a", d, ", [4])\n");
  for (int part = 0; part < 2; ++part) {
    for (int d = 0; d < 6; ++d) absl::StrAppend(&order, order.empty() ? "" : ", ", "t1.a", d, ".", part);
  }
  const Function function = Scheduled(text, absl::StrCat(steps, "reorder([", order, "])\n"));
  const auto lowered = LowerBlocks(function.body);
  ASSERT_TRUE(lowered.ok());
  int64_t stores = 0;
  VisitStmts(PartitionLoops(*lowered), [&](const Stmt& stmt) {
    stores += stmt->kind == StmtKind::kStore;
    return true;
  });
  EXPECT_GT(stores, 8);
  EXPECT_LE(stores, 128);
}

TEST(PlanStorageTest, LargeBuffersMoveAndShareBytes) {
  const std::string text = R"(workload w(x: f32[64,100]) -> (y: f32[64,100]) {
  a[i,j]: f32[64,100] = x[i,j] + 1.0
  b[i,j]: f32[64,100] = a[i,j] * 2.0
  c[i,j]: f32[64,100] = b[i,j] + 3.0
  y[i,j] = c[i,j] * c[i,j]
})";
  const auto lowered = Lower(Scheduled(text, ""), TestTarget());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ASSERT_EQ(lowered->workspace.size(), 3u);
  const auto offset = [&](int i) { return lowered->workspace[i].offset; };
  EXPECT_EQ(offset(0), offset(2));  // a is dead when c begins
  EXPECT_NE(offset(0), offset(1));
  EXPECT_NE(offset(1), offset(2));
  EXPECT_LT(lowered->workspace_shared_bytes, 3 * 64 * 100 * 4);
  EXPECT_EQ(lowered->workspace_thread_bytes, 0);
}

TEST(PlanStorageTest, BuffersInsideParallelLoopsBelongToTheirThread) {
  const std::string text = R"(workload w(x: f32[4,80,80]) -> (y: f32[4,80,80]) {
  a[n,i,j]: f32[4,80,80] = x[n,i,j] + 1.0
  y[n,i,j] = a[n,j,i]
})";
  const auto lowered = Lower(Scheduled(text, "compute_at(t1, t2.a0)\nbind(t2.a0, parallel)\n"), TestTarget());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ASSERT_EQ(lowered->workspace.size(), 1u);
  EXPECT_TRUE(lowered->workspace[0].per_thread);
  EXPECT_GE(lowered->workspace_thread_bytes, 80 * 80 * 4);
  EXPECT_EQ(lowered->workspace_shared_bytes, 0);
  EXPECT_TRUE(lowered->parallel);
}

TEST(HoistPackedTest, WhatDependsOnConstsAloneIsPackedAhead) {
  const std::string text =
      R"(workload w(x: f32[5,8], w: const f32[8,16], s: const f32[16], b: const f32[16]) -> (y: f32[5,16]) {
  f[k,j]: f32[8,16] = w[k,j] * s[j]
  d[i,j]: f32[5,16] = sum[k:8](x[i,k] * f[k,j])
  y[i,j] = d[i,j] + b[j]
})";
  const auto lowered = Lower(Scheduled(text, "cache_read(t4, t5, root, local)\n"), TestTarget());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(MatchesGolden("passes/hoist_packed", PrintLowered(*lowered)));
  // Each const parameter has its buffer, whether or not anything is left in it.
  EXPECT_EQ(lowered->packed_bytes.size(), 5u);
  EXPECT_EQ(lowered->packed_bytes[0], 0);
  EXPECT_EQ(lowered->packed_bytes[2], kPackedHeaderBytes);
  for (const PackedBuffer& packed : lowered->packed) {
    EXPECT_EQ(packed.offset % 64, 0);
    EXPECT_GE(packed.offset, kPackedHeaderBytes);
    EXPECT_LE(packed.offset + packed.buffer->bytes() + 64, lowered->packed_bytes[packed.param]);
  }
  const absl::Status same = CheckFunction(CanonicalWorkload(text), WholeFunction(*lowered));
  EXPECT_TRUE(same.ok()) << same.message();
}

TEST(LowerTest, RefusesCodeThatWouldBeEnormous) {
  const std::string text =
      "workload w(x: f32[512,512,8]) -> (y: f32[512,512,8]) {\n  y[i,j,k] = exp(x[i,j,k])\n}";
  const auto lowered = Lower(Scheduled(text, "bind(t1.a0, unroll)\nbind(t1.a1, unroll)\n"), TestTarget());
  EXPECT_TRUE(absl::IsFailedPrecondition(lowered.status())) << lowered.status();
  EXPECT_NE(lowered.status().message().find("instructions"), std::string::npos);
}

TEST(LowerTest, TheDigestFollowsCodeTargetAndToolchain) {
  const auto a = Lower(Scheduled(kGemm, ""), TestTarget()),
             b = Lower(Scheduled(kGemm, "bind(t2.a0, parallel)\n"), TestTarget());
  ASSERT_TRUE(a.ok() && b.ok());
  Target other = TestTarget();
  other.threads = 7;
  EXPECT_EQ(CodeDigest(*a, TestTarget(), "x"), CodeDigest(*a, TestTarget(), "x"));
  EXPECT_NE(CodeDigest(*a, TestTarget(), "x"), CodeDigest(*b, TestTarget(), "x"));
  EXPECT_NE(CodeDigest(*a, TestTarget(), "x"), CodeDigest(*a, other, "x"));
  EXPECT_NE(CodeDigest(*a, TestTarget(), "x"), CodeDigest(*a, TestTarget(), "y"));
}

}  // namespace
}  // namespace mycc
