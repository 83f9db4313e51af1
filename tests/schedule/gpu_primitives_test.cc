// Primitives for GPUs: blocks, threads, shared memory and its layout. A golden of what they make, the
// interpreter's word that the meaning is unchanged, and what they refuse.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kGemm[] = R"(workload gemm(a: f32[13,10], b: f32[10,18]) -> (c: f32[13,18]) {
  c[i,j] = sum[k:10](a[i,k] * b[k,j])
})";

constexpr char kStencil[] = R"(workload stencil(x: f32[70], w: f32[3]) -> (y: f32[68]) {
  y[i] = sum[r:3](x[i+r] * w[r])
})";

constexpr char kRows[] = R"(workload rows(x: f32[10,37]) -> (m: f32[10], at: i32[10]) {
  m[i] = max[j:37](x[i,j])
  at[i] = argmax[j:37](x[i,j])
})";

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const absl::Status status = CheckTrace(workload, steps, 1e-5, TestGpu());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(MatchesGolden("schedule/" + name, ScheduledText(workload, steps, TestGpu())));
}

constexpr char kTiles[] =
    "split(t2.a0, [8])\nsplit(t2.a1, [4, 2])\nsplit(t2.r0, [4])\n"
    "reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1, t2.a1.2])\n"
    "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\nbind(t2.a0.1, thread)\nbind(t2.a1.1, thread)\n";

TEST(GpuPrimitivesTest, BlocksThreadsAndSharedTiles) {
  Check("gpu_tiles", kGemm,
        std::string(kTiles) +
            "cache_read(t0, t2, t2.r0.0, shared)\nfuse([t0.r.a0, t0.r.a1])\nbind(t0.r.a0+r.a1, thread)\n"
            "cache_read(t1, t2, t2.r0.0, shared)\nbind(t1.r.a0, thread)\nlayout(t1.r, 4, 0)\n");
}

// Primitives that only mark: blocks on an SM, blocks of a cluster, blocks that go on, copies that run ahead.
TEST(GpuPrimitivesTest, MarksOfBlocksAndPipelines) {
  Check("gpu_marks", kGemm,
        "split(t2.a0, [2, 8])\nsplit(t2.r0, [4])\nreorder([t2.a0.1, t2.a0.0, t2.r0.0, t2.a0.2, t2.a1, "
        "t2.r0.1])\n"
        "bind(t2.a0.1, block)\nmulticast_cluster(t2.a0.1)\nbind(t2.a0.0, block)\nmin_blocks_per_sm(t2.a0.0, "
        "2)\npersist(t2.a0.0, "
        "1)\n"
        "pingpong(t2.a0.0, 2)\ncache_write(t2, t2.a0.0)\nstage_shared(t2, t0, t2.r0.0, shared)\n"
        "pipeline(t2.r0.0, threads, 3)\n");
}

// The loops around a tile's copy are not the copy's own.
TEST(GpuPrimitivesTest, ATileInsideLoopsIsPadded) {
  Check("gpu_padded_tile", kGemm,
        "split(t2.a0, [8])\nsplit(t2.r0, [4])\nreorder([t2.a0.0, t2.r0.0, t2.a0.1, t2.a1, t2.r0.1])\n"
        "bind(t2.a0.0, block)\nstage_shared(t2, t0, t2.r0.0, shared)\npad(t0.s, 1, 8)\n");
}

// The copy back has loops of its own, also where an index names a loop and no iteration variable.
TEST(GpuPrimitivesTest, ATileThatLoopsIndexIsStoredThroughSharedMemory) {
  Check("gpu_stage_write_of_loops", kGemm,
        "split(t2.r0, [5])\nreorder([t2.r0.0, t2.a0, t2.a1, t2.r0.1])\ncache_write(t2, t2.r0.0)\n"
        "stage_write(t2.i, t2.i.a0, shared)\n");
}

// A copy for all thread blocks, turned over, its rows filled up with zeros.
TEST(GpuPrimitivesTest, GlobalCopiesPacked) {
  Check("gpu_global_copy", kGemm,
        "cache_read(t1, t2, root, global)\npad(t1.r, 0, 16)\npack(t1.r, [1, 0])\nbind(t1.r.a0, block)\n"
        "bind(t2.a0, block)\n");
}

TEST(GpuPrimitivesTest, SharedCopiesAreOfTheWholeBox) {
  Check("gpu_shared_box", kStencil,
        "split(t2.a0, [32])\nbind(t2.a0.0, block)\ncache_read(t0, t2, t2.a0.0, shared)\n"
        "bind(t0.r.a0, thread)\nbind(t2.a0.1, thread)\n");
}

TEST(GpuPrimitivesTest, ThreadsCarryReductions) {
  Check("gpu_thread_reduction", kRows,
        "split(t1.a0, [4])\nsplit(t1.r0, [8])\nreorder([t1.a0.0, t1.a0.1, t1.r0.1, t1.r0.0])\n"
        "bind(t1.a0.0, block)\nbind(t1.a0.1, thread)\nbind(t1.r0.1, thread)\n");
}

TEST(GpuPrimitivesTest, SetScope) {
  Check("gpu_set_scope", R"(workload w(x: f32[9,40]) -> (y: f32[9,40]) {
  m[i]: f32[9] = max[j:40](x[i,j])
  y[i,j] = x[i,j] - m[i]
})",
        "bind(t2.a0, block)\ncompute_at(t1, t2.a0)\nset_scope(t1, shared)\nbind(t2.a1, thread)\n");
}

constexpr char kSoftmax[] = R"(workload softmax(x: f32[5,37]) -> (y: f32[5,37]) {
  m[i]: f32[5] = max[j:37](x[i,j])
  e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
  s[i]: f32[5] = sum[j:37](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";
constexpr char kSum[] = R"(workload r(x: f32[6,50]) -> (y: f32[6]) { y[i] = sum[j:50](x[i,j]) })";

TEST(GpuPrimitivesTest, OneCopyForAllReadersInRegisters) {
  Check("gpu_row", kSoftmax,
        "split(t4.a0, [2])\ncompute_at(t3, t4.a0.0)\ncompute_at(t2, t4.a0.0)\ncompute_at(t1, t4.a0.0)\n"
        "cache_read(t0, all, t4.a0.0, local)\nbind(t4.a0.0, block)\n"
        "split(t1.r0, [4, 2])\nreorder([t1.r0.1, t1.r0.0])\nbind(t1.a0, thread)\nbind(t1.r0.1, thread)\n"
        "bind(t1.r0.0, unroll)\nbind(t1.r0.2, vector)\n");
}

// More threads than one block has, for a row that two blocks have together.
TEST(GpuPrimitivesTest, BlocksJoinInARow) {
  Check("gpu_join", R"(workload w(x: f32[3,2500]) -> (y: f32[3,2500]) {
  m[i]: f32[3] = max[j:2500](x[i,j])
  y[i,j] = x[i,j] - m[i]
})",
        "bind(t2.a0, block)\ncluster_reduce(t2.a0, 2)\ncompute_at(t1, t2.a0)\nsplit(t1.r0, [2048])\n"
        "reorder([t1.r0.1, t1.r0.0])\nbind(t1.r0.1, thread)\nsplit(t2.a1, [2048])\n"
        "bind(t2.a1.1, thread)\n");
}

TEST(GpuPrimitivesTest, RunsOfAReduction) {
  Check("gpu_rfactor_runs", kSum, "rfactor_runs(t1.r0, 16)\nbind(t1.rf.a0, block)\n");
}

TEST(GpuPrimitivesTest, ArgmaxIsAValueAndAPlace) {
  Check("gpu_split_arg", R"(workload r(x: f32[6,50]) -> (y: i32[6]) { y[i] = argmax[j:50](x[i,j]) })",
        "split_arg(t1)\nsplit(t1.best.r0, [8])\nbind(t1.best.a0, block)\n"
        "reorder([t1.best.r0.1, t1.best.r0.0])\nbind(t1.best.r0.1, thread)\nrfactor(t1.r0, 4)\n");
}

TEST(GpuPrimitivesTest, OneOfAGroup) {
  Check("gpu_elect", kSum,
        "split(t1.a0, [4])\nbind(t1.a0.0, block)\ncache_write(t1, t1.a0.0)\nlane_predicate(t1.w.a0.1, 8)\n"
        "bind(t1.w.a0.1, thread)\nbind(t1.w.a0.1.e, thread)\n");
}

// Each loop of members has a name of its own, by which later steps find it.
TEST(GpuPrimitivesTest, OneOfAGroupOfGroups) {
  const char* steps = "lane_predicate(t1.a0, 2)\nlane_predicate(t1.a0, 3)\nreorder([t1.r0, t1.a0.e])\n";
  EXPECT_EQ(CheckTrace(kSum, steps, 1e-5, TestGpu()), absl::OkStatus());
  EXPECT_THAT(ScheduledText(kSum, steps, TestGpu()),
              HasSubstr("for t1.a0.e2 in 3\n      for t1.r0 in 50\n        for t1.a0.e in 2\n"));
}

// A loop that was split leaves its name, and its parts have names that begin with it.
TEST(GpuPrimitivesTest, OneOfAGroupOfGroupsThatWasSplit) {
  const char* steps =
      "lane_predicate(t1.a0, 2)\nsplit(t1.a0.e, [1])\nlane_predicate(t1.a0, 4)\nsplit(t1.a0.e2, [2])\n"
      "reorder([t1.r0, t1.a0.e.0])\n";
  EXPECT_EQ(CheckTrace(kSum, steps, 1e-5, TestGpu()), absl::OkStatus());
}

// Tiles of 8 x 8 x 4 that reach beyond 13 rows, 18 columns and a depth of 10.
constexpr char kUneven[] =
    "split(t2.a0, [8])\nsplit(t2.a1, [8])\nsplit(t2.r0, [4])\n"
    "reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
    "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\n";
constexpr char kStaged[] = "stage_shared(t2, t0, t2.r0.0, shared)\nstage_shared(t2, t1, t2.r0.0, shared)\n";

TEST(GpuPrimitivesTest, SumsOverWholeTiles) {
  Check("gpu_pad_domain", kGemm,
        absl::StrCat(kUneven, kStaged, "cache_write(t2, t2.a1.0)\npad_domain(t2)\n"));
}

// The depth is cut into runs of 6, and the last one has 4: its terms' guard goes, too.
TEST(GpuPrimitivesTest, RunsOverWholeTiles) {
  Check("gpu_pad_domain_runs", kGemm,
        "rfactor_runs(t2.r0, 6)\nsplit(t2.rf.a0, [8])\nsplit(t2.rf.a1, [8])\nsplit(t2.rf.r0, [3])\n"
        "reorder([t2.rf.a0.0, t2.rf.a1.0, t2.rf.v, t2.rf.r0.0, t2.rf.a0.1, t2.rf.a1.1, t2.rf.r0.1])\n"
        "stage_shared(t2.rf, t0, t2.rf.r0.0, shared)\nstage_shared(t2.rf, t1, t2.rf.r0.0, shared)\n"
        "cache_write(t2.rf, t2.rf.v)\npad_domain(t2.rf)\n");
}

// A tile with the pixels of all taps: those of its own and, of the last one, the taps'.
TEST(GpuPrimitivesTest, TapsShareATile) {
  const char* const steps = "split(t2.a0, [8])\nreorder([t2.a0.0, t2.r0, t2.a0.1])\nbind(t2.a0.0, block)\n";
  Check("gpu_window", kStencil, absl::StrCat(steps, "stage_window(t2, t0, t2.a0.0, shared, t2.r0)\n"));
  // Dilated, padded, and two dimensions of it.
  const absl::Status status =
      CheckTrace(R"(workload w(x: f32[9,12], w: f32[3,2]) -> (y: f32[9,10]) {
  p[i,j]: f32[13,12] = select(2 <= i && i < 11, x[i-2,j], 0.0)
  y[i,j] = sum[r:3, s:2](p[i+r*2,j+s] * w[r,s])
})",
                 "inline(t2)\nsplit(t3.a0, [4])\nreorder([t3.a0.0, t3.r0, t3.r1, t3.a0.1, t3.a1])\n"
                 "bind(t3.a0.0, block)\nstage_window(t3, t0, t3.a0.0, shared, t3.r0)\n",
                 1e-5, TestGpu());
  EXPECT_TRUE(status.ok()) << status.message();
  const auto text = [&](const std::string& step) { return ScheduledText(kStencil, steps + step, TestGpu()); };
  EXPECT_THAT(text("stage_window(t2, t0, t2.r0, shared, t2.r0)"),
              HasSubstr("loop t2.r0 is not inside t2.r0, or t0 does not step with it"));
  EXPECT_THAT(text("stage_window(t2, t1, t2.a0.0, shared, t2.r0)"),
              HasSubstr("loop t2.r0 does not run over the taps of a window of t1"));
  EXPECT_THAT(text("split(t2.r0, [2])\nreorder([t2.a0.0, t2.r0.0, t2.r0.1, t2.a0.1])\n"
                   "stage_window(t2, t0, t2.r0.0, shared, t2.r0.1)"),
              HasSubstr("loop t2.r0.1 runs beyond the taps of t2"));
  // Every second element: the taps of one are not the elements of others.
  EXPECT_THAT(ScheduledText(R"(workload w(x: f32[70], w: f32[3]) -> (y: f32[34]) {
  y[i] = sum[r:3](x[i*2+r] * w[r])
})",
                            absl::StrCat(steps, "stage_window(t2, t0, t2.a0.0, shared, t2.r0)"), TestGpu()),
              HasSubstr("loop t2.r0 does not run over the taps of a window of t0"));
}

// A copy that is shared out unevenly among threads fills its tile all the same.
TEST(GpuPrimitivesTest, WholeTilesOfUnevenCopies) {
  const absl::Status status =
      CheckTrace(kGemm,
                 absl::StrCat(kUneven, kStaged,
                              "fuse([t0.s.a0.1, t0.s.r0.1])\nsplit(t0.s.a0.1+s.r0.1, [5])\n"
                              "bind(t0.s.a0.1+s.r0.1.1, thread)\n"
                              "cache_write(t2, t2.a1.0)\npad_domain(t2)\n"),
                 1e-5, TestGpu());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GpuPrimitivesTest, WhatCannotRunOverWholeTiles) {
  const auto text = [](const char* workload, const std::string& steps) {
    return ScheduledText(workload, steps, TestGpu());
  };
  EXPECT_THAT(text(kGemm, absl::StrCat(kUneven, kStaged, "pad_domain(t2)")),
              HasSubstr("it adds no products to an accumulator"));
  EXPECT_THAT(text(kGemm, absl::StrCat(kUneven, "stage_shared(t2, t0, t2.r0.0, shared)\n",
                                       "cache_write(t2, t2.a1.0)\npad_domain(t2)")),
              HasSubstr("a factor of its product is not an element of a tile in shared memory"));
  // The box of all 13 rows, where the loops make 16.
  EXPECT_THAT(text(kGemm,
                   "split(t2.a0, [16])\nreorder([t2.a0.0, t2.r0, t2.a0.1, t2.a1])\nbind(t2.a0.0, block)\n"
                   "cache_read(t0, t2, t2.r0, shared)\ncache_read(t1, t2, t2.r0, shared)\n"
                   "cache_write(t2, t2.a0.0)\npad_domain(t2)"),
              HasSubstr("beyond the edges it would read outside of t0.r"));
  // Elements beyond a window are elements, not zeros.
  EXPECT_THAT(text(kStencil,
                   "split(t2.a0, [32])\nsplit(t2.r0, [2])\nreorder([t2.a0.0, t2.r0.0, t2.a0.1, t2.r0.1])\n"
                   "bind(t2.a0.0, block)\ncache_read(t0, t2, t2.r0.0, shared)\n"
                   "stage_shared(t2, t1, t2.r0.0, shared)\ncache_write(t2, t2.a0.0)\npad_domain(t2)"),
              HasSubstr("t0.r is not known to be zero where r0 >= 3"));
  // Rows that are padded tile by tile are computed as far as the tensor goes.
  EXPECT_THAT(text(R"(workload w(x: f32[9,10], b: f32[10,18]) -> (c: f32[13,18]) {
  a[i,k]: f32[13,10] = select(2 <= i && i < 11, x[i-2,k], 0.0)
  c[i,j] = sum[k:10](a[i,k] * b[k,j])
})",
                   "split(t3.a0, [8])\nreorder([t3.a0.0, t3.r0, t3.a0.1, t3.a1])\nbind(t3.a0.0, block)\n"
                   "compute_at(t2, t3.r0)\nset_scope(t2, shared)\nstage_shared(t3, t1, t3.r0, shared)\n"
                   "cache_write(t3, t3.a0.0)\npad_domain(t3)"),
              HasSubstr("elements of t2 are left unwritten"));
}

constexpr char kHalves[] = R"(workload w(a: f16[32,16], b: f16[24,16]) -> (c: f32[32,24]) {
  c[i,j] = sum[k:16](f32(a[i,k]) * f32(b[j,k]))
})";
#define MYCC_TILE_STEPS "split(t2.a0, [32])\nbind(t2.a0.0, block)\ncache_write(t2, t2.a0.0)\n"

// The operand with the rows may be in registers.
TEST(GpuPrimitivesTest, AnOperandInRegisters) {
  Check("gpu_register_operand", kHalves,
        MYCC_TILE_STEPS
        "cache_read(t0, t2, t2.a0.0, local)\nstage_shared(t2, t1, t2.a0.0, shared)\n"
        "tensorize_tile(t2.a0.1, mma.f16, 1, 1)\n");
}

struct Refusal {
  const char* workload;
  const char* steps;
  const char* message;
};

class GpuRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(GpuRefusalTest, SaysWhy) {
  EXPECT_THAT(ScheduledText(GetParam().workload, GetParam().steps, TestGpu()), HasSubstr(GetParam().message));
}

constexpr Refusal kRefusals[] = {
    {kGemm, "bind(t2.a0, parallel)", "parallel is for CPUs; a GPU has block and thread"},
    {kGemm, "bind(t2.a1, block)", "it is inside loop t2.a0, which is not bound to blocks"},
    {kGemm, "bind(t2.r0, block)", "carries a reduction"},
    {kGemm, "bind(t2.a0, block)\ncache_read(t1, t2, t2.a0, shared)\nbind(t2.a1, block)",
     "but not its only statement"},
    {kGemm, "bind(t2.a1, thread)\nbind(t2.a0, block)\nsplit(t2.a0, [1])", "the loop is block"},
    {kGemm, "bind(t2.a0, thread)\ncache_read(t1, t2, t2.a0, shared)", "made outside of thread loops; t2.a0"},
    {kGemm, "split(t2.a0, [256])\nbind(t2.a0.1, thread)\nbind(t2.a1, thread)",
     "the block would have 4608 threads; at most 1024"},
    {kGemm, "cache_read(t0, t2, root, shared)", "scope shared is for copies in a loop"},
    {kGemm, "cache_read(t0, t2, t2.a0, local)\nlayout(t0.r, 4, 0)", "t0.r is in scope local"},
    {kGemm, "cache_read(t0, t2, t2.a0, shared)\nlayout(t0.r, 4, 48)", "expected 0, 32, 64 or 128"},
    {kGemm, "cache_read(t0, t2, t2.a0, shared)\nlayout(t0.r, 0, 64)", "rows of 40 bytes"},
    {kGemm, "cache_read(t0, t2, t2.a0, shared)\nlayout(t0.r, 4, 32)",
     "a row pad of 4 and swizzle 32; expected one of them"},
    {kGemm, "cache_read(t0, t2, root, local)\nset_scope(t0.r, shared)", "allocated at the root"},
    {kGemm, "cache_read(t0, t2, t2.a0, local)\nset_scope(t0.r, packed)", "is not a scope to choose"},
    {kSoftmax, "split_arg(t1)", "t1 is not an argmax or argmin"},
    {kRows, "split(t2.r0, [4])\nsplit_arg(t2)", "t2 has been scheduled already"},
    {kSoftmax, "lane_predicate(t4.a0, 0)", "a group of 0; expected 1 to 8192"},
    {kSoftmax, "cache_read(t0, all, t4.a0, local)", "nothing under loop t4.a0 reads t0"},
    {kSoftmax, "cache_read(t0, all, root, local)", "`all` is for copies in a loop; this one is at root"},
    {kSoftmax, "compute_at(t3, t4.a0)\ncompute_at(t2, t4.a0)\ncache_read(t2, all, t4.a0, local)",
     "`all` needs a tensor that is complete before its readers' nest; t2 writes it inside"},
    {kSum, "rfactor_runs(t1.r0, 1)", "factor 1 is not between 2 and the extent 50"},
    {kGemm, "cache_write(t2, t2.r0)\nbind(t2.r0, thread)",
     "iterations depend on each other through the partial sums of t2"},
    {kGemm, "bind(t2.r0, thread)\ncache_write(t2, t2.r0)", "accumulate outside of it"},
    {kGemm, "cache_read(t1, t2, t2.a0, shared)\nbind(t2.a0, thread)",
     "t1.r, which the threads of a block share"},
    {kGemm, "split(t2.a0, [2])\nbind(t2.a0.0, block)\nbind(t2.a0.1, block)\nmulticast_cluster(t2.a0.1)",
     "expected the outermost block loop"},
    {kGemm, "min_blocks_per_sm(t2.a0, 2)", "the loop is serial; expected a block loop"},
    {kGemm, "bind(t2.a0, block)\nmin_blocks_per_sm(t2.a0, 33)", "33 blocks on an SM; expected 1 to 32"},
    {kHalves,
     MYCC_TILE_STEPS "stage_shared(t2, t0, t2.a0.0, shared)\ncache_read(t1, t2, t2.a0.0, local)\n"
                     "tensorize_tile(t2.a0.1, mma.f16, 1, 1)",
     "from shared memory, or that with the rows, of 16 bits, from registers; t1.r is in scope local"},
    {kHalves, MYCC_TILE_STEPS "stage_shared(t2, t1, t2.a0.0, shared)\ntensorize_tile(t2.a0.1, mma.f16, 1, 1)",
     "t0 is in scope global: stage it first"},
    {kGemm, "persist(t2.a0, 2)", "the loop is serial; expected a block loop"},
    {kGemm, "bind(t2.a0, block)\npingpong(t2.a0, 2)", "persist it first"},
    {kGemm, "stream_k(t2.a0, 2, 1, 2)", "the loop is serial; expected a block loop"},
    {kGemm, "bind(t2.a0, block)\nstream_k(t2.a0, 4, 1, 0)", "0 members of a group; expected 1 to 4096"},
    {kGemm, "bind(t2.a0, block)\npersist(t2.a0, 14)", "14 blocks for 13 iterations; expected at least 1"},
    {kGemm, "bind(t2.a0, block)\npipeline(t2.a0, threads, 2)", "the loop is block; expected a serial loop"},
    {kGemm, "pipeline(t2.r0, turns, 2)", "turns is not a kind of pipeline; expected threads or bulk"},
    {kGemm, "nontemporal(t2.a0)", "; expected a CPU"},
    {kGemm, "bind(t2.a0, block)\nstream_k(t2.a0, 4, 3, 2)", "4 blocks with 3 groups of 2; expected"},
    {kGemm, "pad(t2, 0, 64)", "t2 is a reduction"},
    {kSoftmax, "pad(t4, 0, 64)", "its shape is the caller's"},
    {kGemm, "cache_read(t0, t2, t2.a0, global)", "scope global is for copies at root"},
    {kGemm, "pipeline(t2.r0, threads, 1)", "1 stages; expected 2 to 16"},
    {kGemm, "pipeline(t2.r0, threads, 2)", "nothing is copied into shared memory in the loop"},
    {kGemm, "cluster_reduce(t2.a0, 2)", "the loop is serial; expected a block loop"},
    {kGemm, "bind(t2.a0, block)\ncluster_reduce(t2.a0, 6)", "6 blocks; expected a power of two from 2 to 8"},
    {kGemm, "bind(t2.a0, block)\ncluster_reduce(t2.a0, 16)",
     "16 blocks; expected a power of two from 2 to 8"},
    {kGemm, "bind(t2.a0, block)\npersist(t2.a0, 2)\ncluster_reduce(t2.a0, 2)",
     "t2.a0 is already divided among thread blocks"},
    {kGemm,
     "split(t2.a0, [2, 2])\nbind(t2.a0.0, block)\nbind(t2.a0.1, block)\ncluster_reduce(t2.a0.0, "
     "2)\ncluster_reduce(t2.a0.1, 2)",
     "t2.a0.0 is already divided among thread blocks"},
    {kGemm, "bind(t2.a0, block)\ncache_read(t1, t2, t2.a0, shared)\ncluster_reduce(t2.a0, 2)",
     "t1.r is in shared memory, which blocks do not share"},
    {kGemm,
     "split(t2.a0, [256])\nreorder([t2.a1, t2.a0.0, t2.a0.1])\nbind(t2.a1, block)\ncluster_reduce(t2.a1, 4)\n"
     "split(t2.r0, [32])\nbind(t2.a0.1, thread)\nbind(t2.r0.1, thread)",
     "the 4 blocks of cluster_reduce would have 8192 threads; at most 4096"},
    {kGemm, "multicast_cluster(t2.a0)", "the loop is serial; expected a block loop"},
    {kGemm,
     "split(t2.a0, [16])\nreorder([t2.a0.1, t2.a0.0])\nbind(t2.a0.1, block)\nmulticast_cluster(t2.a0.1)",
     "a cluster of 16 blocks; expected a power of two from 2 to 8"},
    {kRows, "flip_sign(t2, t0)", "t2 reduces tuples (argmax), and is no stage of one value"},
};
TEST(GpuPrimitivesTest, AmpereHasNoClusters) {
  EXPECT_THAT(ScheduledText(kGemm, "bind(t2.a0, block)\ncluster_reduce(t2.a0, 2)", *ParseTarget("a100")),
              HasSubstr("; expected sm_90a"));
}

INSTANTIATE_TEST_SUITE_P(All, GpuRefusalTest, ::testing::ValuesIn(kRefusals));

}  // namespace
}  // namespace mycc
