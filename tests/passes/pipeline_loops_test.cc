// The pass that makes pipelines: every statement by which they are ordered is needed, and what cannot run
// ahead is refused.
#include <set>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/passes/tensor_core_product.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool IsOrder(const Stmt& stmt) {
  static const std::set<StmtKind> kinds = {
      StmtKind::kArrive,    StmtKind::kWait,           StmtKind::kCommitGroup,
      StmtKind::kWaitGroup, StmtKind::kFence,          StmtKind::kSignal,
      StmtKind::kAwait,     StmtKind::kCommitProducts, StmtKind::kWaitProducts};
  return kinds.contains(stmt->kind);
}

// How many statements order the pipeline of a schedule, and, each being left out in turn, the text of those
// that nobody misses.
struct Ordered {
  int statements = 0;
  std::vector<std::string> not_missed;
};
Ordered LeaveOutInTurn(const std::string& steps) {
  const Function function = Lowered(steps).value();
  std::vector<Stmt> order;
  VisitStmts(function.body, [&](const Stmt& stmt) {
    if (IsOrder(stmt)) order.push_back(stmt);
    return true;
  });
  Ordered result;
  for (const Stmt& statement : order) {
    Function broken = function;
    broken.body = RewriteStmts(function.body,
                               [&](const Stmt& stmt) { return stmt == statement ? Nothing() : nullptr; });
    ++result.statements;
    if (Meaning(broken).ok()) result.not_missed.push_back(PrintStmt(statement));
  }
  return result;
}

TEST(PipelineLoopsTest, EveryStatementThatOrdersIsNeeded) {
  for (const auto& [steps, statements] :
       {std::pair(WarpSpecialized(), 12), {PingPong(), 26}, {InClusters(), 12}}) {
    const Ordered ordered = LeaveOutInTurn(steps);
    EXPECT_EQ(ordered.statements, statements) << steps;
    EXPECT_THAT(ordered.not_missed, IsEmpty()) << steps;
  }
  // No block has another tile after one of two steps, so nothing is copied to the slot of the first step.
  const Ordered shared_out = LeaveOutInTurn(StreamK());
  EXPECT_EQ(shared_out.statements, 14);
  EXPECT_THAT(shared_out.not_missed,
              ElementsAre("wait products until 1 pending\n",
                          "arrive barrier[(t3.a0.0+a1.0.before + t3.r0.0.before) % 2 + 2]\n"));
  // Beside tensor cores nothing is copied beyond the last step that the end of the pipeline could wait for.
  const Ordered ordered = LeaveOutInTurn(Multistage());
  EXPECT_EQ(ordered.statements, 5);
  EXPECT_THAT(ordered.not_missed, ElementsAre("wait group until 0 pending\n"));
}

// A ring of one slot less than its pipeline counts on.
TEST(PipelineLoopsTest, APendingGroupTooManyIsARace) {
  Function function = Lowered(Multistage()).value();
  function.body = RewriteStmts(function.body, [](const Stmt& stmt) -> Stmt {
    const WaitGroup* wait = DynAs<WaitGroup>(stmt);
    return wait == nullptr ? nullptr : std::make_shared<WaitGroup>(wait->pending + 1);
  });
  EXPECT_THAT(Meaning(function).message(), HasSubstr("t0.s"));
}

TEST(PipelineLoopsTest, LoopsWithoutTheMarkStayAsTheyAre) {
  const Stmt body = Before("tensorize_tiles", "").body;
  EXPECT_EQ(PipelineLoops(body).value(), body);
}

TEST(PipelineLoopsTest, WhatCannotRunAheadIsRefused) {
  const Buffer from = MakeBuffer("from", DType::kF32, {4}), to = MakeBuffer("to", DType::kF32, {4});
  const Buffer tile = MakeBuffer("tile", DType::kF32, {4}, Scope::kShared);
  const Var step = MakeVar("step", 4), lane = MakeVar("lane", 4);
  const Stmt fill = Loop(lane, Put(tile, {VarRef(lane)}, Load(from, {VarRef(step)})));
  const Stmt use = Put(to, {VarRef(step)}, Load(tile, {IntConst(0)}));
  const auto refusal = [&](std::vector<Stmt> body, PipelineKind kind, const LoopMarks& grid) {
    const Stmt loop = For(step, IntConst(4), LoopKind::kSerial, InScope(tile, MakeSeq(std::move(body))))
                          .Marked({.pipeline = {kind, 2}});
    const Var block = MakeVar("block", 2);
    return std::string(
        PipelineLoops(For(block, IntConst(2), LoopKind::kGrid, loop).Marked(grid)).status().message());
  };
  EXPECT_EQ(refusal({fill, use}, PipelineKind::kThreads, {}), "");
  EXPECT_EQ(refusal({use}, PipelineKind::kThreads, {}),
            "loop step cannot be pipelined: it copies nothing into shared memory");
  EXPECT_EQ(
      refusal({use, fill}, PipelineKind::kThreads, {}),
      "loop step cannot be pipelined: tile is filled after it was used, or with what is computed before");
  const Buffer own = MakeBuffer("own", DType::kF32, {4}, Scope::kLocal);
  const Stmt compute = Loop(lane, Put(own, {VarRef(lane)}, F32(0)));
  const Stmt fill_with_own = Loop(lane, Put(tile, {VarRef(lane)}, Load(own, {VarRef(lane)})));
  EXPECT_THAT(refusal({InScope(own, MakeSeq({compute, fill_with_own, use}))}, PipelineKind::kThreads, {}),
              HasSubstr("tile is filled after it was used, or with what is computed before"));
  // Computing that has nothing to do with the tile may stand before.
  EXPECT_EQ(refusal({InScope(own, MakeSeq({compute, fill, use}))}, PipelineKind::kThreads, {}), "");
  EXPECT_EQ(refusal({fill, use}, PipelineKind::kThreads, {.multicast_cluster = true}),
            "cluster block: only bulk copies of a pipeline reach other blocks");
  EXPECT_THAT(refusal({fill, use}, PipelineKind::kBulk, {}),
              HasSubstr("the copy engine cannot do this copy"));
}

TEST(BulkBoxTest, BoxesAreTilesAsTheCopyEngineWritesThem) {
  const Buffer from = MakeBuffer("from", DType::kF32, {64, 64});
  const Var i = MakeVar("i", 8), j = MakeVar("j", 16);
  const auto box = [&](int64_t row_pad, int64_t swizzle) {
    const Layout layout = SharedMemoryLayout({8, 16}, /*element_bytes=*/4, row_pad, swizzle);
    const Buffer tile =
        std::make_shared<BufferNode>(BufferNode{"tile", DType::kF32, {8, 16}, Scope::kShared, layout});
    return BulkBoxOf(Loop(i, Loop(j, Put(tile, {VarRef(i), VarRef(j)}, Load(from, {VarRef(i), VarRef(j)})))));
  };
  EXPECT_TRUE(box(0, 0).ok()) << box(0, 0).status();
  for (const int64_t swizzle : {32, 64}) EXPECT_TRUE(box(0, swizzle).ok()) << swizzle;
  EXPECT_THAT(box(4, 0).status().message(), HasSubstr("tile lies as (8,16):(20,1); the engine writes a box"));
}

}  // namespace
}  // namespace mycc
