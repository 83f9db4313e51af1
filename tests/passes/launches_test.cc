// Launches of hand-written code: the shapes that follow from loops, the parts of shared memory, and what a
// GPU cannot launch.
#include "absl/strings/str_cat.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/passes/lower.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

const Buffer kX = MakeBuffer("x", DType::kF32, {4096}), kY = MakeBuffer("y", DType::kF32, {4096});

// block (i in `blocks`): thread (j in `threads`): y[j] = x[j]
Stmt Grid(int64_t blocks, int64_t threads, LoopMarks marks = {}) {
  const Var i = MakeVar("i", blocks), j = MakeVar("j", threads);
  const Stmt nest = Loop(j, Put(kY, {VarRef(j)}, Load(kX, {VarRef(j)})), LoopKind::kThread);
  return std::make_shared<For>(i, IntConst(blocks), LoopKind::kGrid, nest)->Marked(marks);
}

// The first line of each launch; or the refusal.
std::string Lines(const Stmt& body, const Target& target = TestGpu()) {
  const absl::StatusOr<Stmt> launches = MakeLaunches(body, target);
  if (!launches.ok()) return std::string(launches.status().message());
  const absl::StatusOr<Stmt> combines = PlaceCombines(*launches);
  if (!combines.ok()) return std::string(combines.status().message());
  const absl::StatusOr<Stmt> placed = PlaceShared(*combines, target);
  if (!placed.ok()) return std::string(placed.status().message());
  std::string lines;
  for (const Stmt& launch :
       placed->get()->kind == StmtKind::kSeq ? As<Seq>(*placed).stmts : std::vector{*placed})
    absl::StrAppend(&lines, StmtName(launch), "\n");
  return lines;
}

TEST(LaunchesTest, ThreadsAreWholeWarps) {
  EXPECT_EQ(Lines(Grid(7, 33)), "\"launch grid 7, 64 threads\"\n");
  EXPECT_EQ(Lines(Put(kY, {IntConst(0)}, F32(1))), "\"launch grid 1, 32 threads\"\n");
}

// No thread has an element, and none joins others in a reduction over a part of whole threads.
TEST(LaunchesTest, RowsOfATensorWithoutAny) {
  for (const char* text :
       {"workload w(x: f32[0,1000]) -> (y: f32[0]) {\n  y[i] = max[j:1000](x[i,j])\n}",
        "workload w(x: f32[0,1000]) -> (y: i32[0]) {\n  y[i] = argmax[j:1000](x[i,j])\n}"}) {
    const absl::StatusOr<LoweredFunction> lowered = Lower(BuildNaive(CanonicalWorkload(text)), TestGpu());
    EXPECT_TRUE(lowered.ok()) << text << lowered.status();
  }
}

TEST(LaunchesTest, MarksOfGridLoopsAreInTheShape) {
  LoopMarks marks;
  marks.min_blocks_per_sm = 2;
  EXPECT_EQ(Lines(Grid(6, 32, marks)), "\"launch grid 6, 32 threads, 2 on an SM\"\n");
  LoopMarks cluster;
  cluster.multicast_cluster = true;
  EXPECT_EQ(Lines(Grid(2, 32, cluster)), "\"launch grid 2, 32 threads, clusters of 2\"\n");
  LoopMarks joined;
  joined.cluster_reduce_blocks = 4;
  EXPECT_EQ(Lines(Grid(6, 256, joined)),
            "\"launch grid 24, 64 threads, clusters of 4 that reduce together\"\n");
}

// A loop of one iteration goes, and what is marked on it stays: rows of a matrix of one column.
TEST(LaunchesTest, MarksOfGridLoopsWithOneIterationStay) {
  LoopMarks marks;
  marks.cluster_reduce_blocks = 4;
  marks.min_blocks_per_sm = 2;
  constexpr char kLaunch[] =
      "\"launch grid 24, 64 threads, clusters of 4 that reduce together, 2 on an SM\"\n";
  const Var i = MakeVar("i", 6), one = MakeVar("one", 1);
  EXPECT_EQ(Lines(SimplifyStmts(Loop(i, Grid(1, 256, marks), LoopKind::kGrid))), kLaunch);
  const auto around = std::make_shared<For>(one, IntConst(1), LoopKind::kGrid, Grid(6, 256))->Marked(marks);
  EXPECT_EQ(Lines(SimplifyStmts(around)), kLaunch);
  EXPECT_EQ(Lines(SimplifyStmts(Loop(one, Grid(1, 256, marks), LoopKind::kGrid))),
            "\"launch grid 4, 64 threads, clusters of 4 that reduce together, 2 on an SM\"\n");
}

TEST(LaunchesTest, NeighboursOverlapFromHopperOn) {
  const Stmt three = MakeSeq({Grid(2, 32), Grid(3, 32), Grid(4, 32)});
  EXPECT_EQ(Lines(three),
            "\"launch grid 2, 32 threads, lets the next begin early\"\n"
            "\"launch grid 3, 32 threads, may begin early, lets the next begin early\"\n"
            "\"launch grid 4, 32 threads, may begin early\"\n");
  EXPECT_EQ(Lines(MakeSeq({Grid(2, 32), Grid(3, 32)}), *ParseTarget("a100")),
            "\"launch grid 2, 32 threads\"\n\"launch grid 3, 32 threads\"\n");
}

TEST(LaunchesTest, WhatDoesNotFitAGpuIsRefused) {
  EXPECT_EQ(Lines(Grid(2, 1025)), "a thread block of 1025 threads; at most 1024 are possible");
  EXPECT_THAT(Lines(Grid(int64_t{1} << 31, 32)), HasSubstr("more blocks than the 2^31 - 1"));
  const Var turn = MakeVar("turn", 3);
  EXPECT_EQ(Lines(Loop(turn, Grid(2, 32))),
            "block loop i is inside other code; block loops are the outermost");
  const Var j = MakeVar("j", 8), tail = MakeVar("tail", 8);
  EXPECT_EQ(Lines(Loop(j, std::make_shared<For>(tail, VarRef(j), LoopKind::kThread,
                                                Put(kY, {VarRef(tail)}, F32(1))))),
            "thread loop tail has no constant extent");
  const Buffer tile = MakeBuffer("tile", DType::kF32, {8}, Scope::kShared);
  EXPECT_EQ(Lines(Loop(j, InScope(tile, Put(tile, {VarRef(j)}, F32(1))), LoopKind::kThread)),
            "tile in shared memory is allocated inside the thread loop j");
  LoopMarks joined;
  joined.cluster_reduce_blocks = 4;
  EXPECT_EQ(Lines(Grid(6, 96, joined)),
            "4 thread blocks of cluster_reduce on i cannot share 96 threads; expected a multiple of 128");
}

// thread j in `threads`: combine own[0] += x[j]
Stmt Sum(int64_t threads, const Buffer& own) {
  const Var j = MakeVar("j", threads);
  const Stmt combine =
      std::make_shared<Combine>(ReduceOp::kSum, own, std::vector<Expr>{IntConst(0)}, Load(kX, {VarRef(j)}));
  return InScope(own, Loop(j, combine, LoopKind::kThread));
}

TEST(LaunchesTest, SharedMemoryHoldsBuffersThenScratchThenBarriers) {
  const Buffer own = MakeBuffer("own", DType::kF32, {1}, Scope::kLocal);
  // A warp combines by shuffles. Four warps need a word for each thread.
  EXPECT_EQ(Lines(Sum(32, own)), "\"launch grid 1, 32 threads\"\n");
  EXPECT_EQ(Lines(Sum(128, own)), "\"launch grid 1, 128 threads, 512 bytes shared\"\n");
  const Buffer tile = MakeBuffer("tile", DType::kF32, {10}, Scope::kShared);
  EXPECT_EQ(Lines(InScope(tile, MakeSeq({Put(tile, {IntConst(0)}, F32(1)), Sum(128, own)}))),
            "\"launch grid 1, 128 threads, 560 bytes shared\"\n");
  EXPECT_EQ(Lines(InScope(tile, MakeSeq({Put(tile, {IntConst(0)}, F32(1)), Sum(32, own)}))),
            "\"launch grid 1, 32 threads, 48 bytes shared\"\n");
}

TEST(LaunchesTest, ThreadsCombineAsWholeWarpsOrWithinOne) {
  const Buffer own = MakeBuffer("own", DType::kF32, {1}, Scope::kLocal);
  const Var other = MakeVar("other", 128);
  const Stmt more = Loop(other, Put(kY, {VarRef(other)}, F32(1)), LoopKind::kThread);
  EXPECT_EQ(Lines(MakeSeq({Sum(24, own)})), "\"launch grid 1, 32 threads\"\n");
  EXPECT_EQ(Lines(InScope(own, MakeSeq({more, As<Alloc>(Sum(48, own)).body}))),
            "threads combine across warps in a nest of 48, which are not whole warps; the team has 128");
}

TEST(LaunchesTest, AReducingClusterCombinesWholeBlocksOrPartsOfOne) {
  const Buffer own = MakeBuffer("own", DType::kF32, {1}, Scope::kLocal);
  const auto lines = [&](int64_t threads, int64_t blocks) {
    LoopMarks marks;
    marks.cluster_reduce_blocks = blocks;
    const Var i = MakeVar("i", 3);
    return Lines(
        std::make_shared<For>(i, IntConst(3), LoopKind::kGrid, MakeSeq({Sum(threads, own)}))->Marked(marks));
  };
  // Messages of 2 rounds from 2 blocks, 4 bytes each, with 2 barriers; 64 words of scratch.
  EXPECT_EQ(lines(128, 2),
            "\"launch grid 6, 64 threads, clusters of 2 that reduce together, 288 bytes shared\"\n");
  // Rows of 64 threads in blocks of 96.
  const Var row = MakeVar("row", 3), lane = MakeVar("lane", 64);
  const Buffer sums = MakeBuffer("sums", DType::kF32, {3}, Scope::kLocal);
  const Stmt combine = std::make_shared<Combine>(ReduceOp::kSum, sums, std::vector<Expr>{VarRef(row)},
                                                 Load(kX, {VarRef(lane)}));
  LoopMarks marks;
  marks.cluster_reduce_blocks = 2;
  const Var i = MakeVar("i", 3);
  const Stmt nest = InScope(sums, Loop(row, Loop(lane, combine, LoopKind::kThread), LoopKind::kThread));
  EXPECT_THAT(Lines(std::make_shared<For>(i, IntConst(3), LoopKind::kGrid, nest)->Marked(marks)),
              HasSubstr("64 threads, 1 apart, combine sums; in a cluster_reduce over blocks of 96 threads"));
}

TEST(LaunchesTest, BuffersInSharedMemoryHaveOffsets) {
  const Buffer a = MakeBuffer("a", DType::kF32, {16}, Scope::kShared),
               b = MakeBuffer("b", DType::kF32, {16}, Scope::kShared);
  const Stmt body = InScope(
      a, InScope(b, MakeSeq({Put(a, {IntConst(0)}, F32(1)), Put(b, {IntConst(0)}, Load(a, {IntConst(0)}))})));
  const absl::StatusOr<Stmt> launch = MakeLaunches(body, TestGpu());
  ASSERT_TRUE(launch.ok()) << launch.status().message();
  const absl::StatusOr<Stmt> placed = PlaceShared(*launch, TestGpu());
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_THAT(PrintStmt(*placed), HasSubstr("alloc a: f32[16] shared at 0\nalloc b: f32[16] shared at 64\n"));
}

TEST(LaunchesTest, MoreSharedMemoryThanThereIsIsRefused) {
  const Buffer tile = MakeBuffer("tile", DType::kF32, {100000}, Scope::kShared);
  EXPECT_EQ(Lines(InScope(tile, Put(tile, {IntConst(0)}, F32(1)))),
            "a thread block takes 400000 bytes of shared memory; NVIDIA H200 has 232448");
}

}  // namespace
}  // namespace mycc
