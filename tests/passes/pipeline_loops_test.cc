// The pass that makes pipelines: every statement by which they are ordered is needed, and what cannot run
// ahead is refused.
#include <set>

#include "absl/strings/str_join.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/print.h"
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

// A box's dimensions: "begin:extent of size by stride", outermost first.
std::string DimsOf(const absl::StatusOr<BulkBox>& box) {
  if (!box.ok()) return std::string(box.status().message());
  std::vector<std::string> dims;
  for (const BulkBox::Dim& dim : box->dims) {
    EXPECT_EQ(dim.step, 1);
    dims.push_back(absl::StrCat(PrintExpr(dim.begin), ":", dim.extent, " of ", dim.size, " by ", dim.stride));
  }
  return absl::StrJoin(dims, ", ");
}

TEST(BulkBoxTest, TapsOfAWindowOverlap) {
  const Buffer from = MakeBuffer("from", DType::kF16, {20, 21, 16});
  const Var i = MakeVar("i", 6), j = MakeVar("j", 8), tap = MakeVar("tap", 4), c = MakeVar("c", 16),
            e = MakeVar("e", 64), at = MakeVar("at", 2);
  const Expr row = VarRef(i) + VarRef(at) * 8, pixel = VarRef(j) + VarRef(at) * 8;
  const auto boxed = [&](const std::vector<Var>& loops, const std::vector<Expr>& indices) {
    std::vector<int64_t> shape;
    std::vector<Expr> place;
    for (const Var& loop : loops) {
      shape.push_back(loop->extent);
      place.push_back(VarRef(loop));
    }
    const Layout layout = SharedMemoryLayout(shape, /*element_bytes=*/2, 0, /*swizzle=*/32);
    const Buffer tile =
        std::make_shared<BufferNode>(BufferNode{"tile", DType::kF16, shape, Scope::kShared, layout});
    Stmt nest = Put(tile, place, Load(from, indices));
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) nest = Loop(*loop, nest);
    return DimsOf(BulkBoxOf(nest));
  };
  // A dimension for the pixels, and one for the taps.
  EXPECT_EQ(boxed({i, j, tap, c}, {row, pixel + VarRef(tap), VarRef(c)}),
            "at * 8:6 of 20 by 336, at * 8:8 of 18 by 16, 0:4 of 4 by 16, 0:16 of 16 by 1");
  // Taps and channels of one loop lie one behind the other.
  EXPECT_EQ(boxed({i, j, e}, {row, pixel + FloorDiv(VarRef(e), 16), Mod(VarRef(e), 16)}),
            "at * 8:6 of 20 by 336, at * 8:8 of 18 by 16, 0:64 of 64 by 1");
  // The order is the tile's.
  EXPECT_EQ(boxed({j, i, c}, {row, pixel, VarRef(c)}),
            "at * 8:8 of 21 by 16, at * 8:6 of 20 by 336, 0:16 of 16 by 1");
  EXPECT_EQ(boxed({i, c, j}, {row, pixel, VarRef(c)}),
            "the copy engine cannot do this copy: its last dimension is not contiguous");
  EXPECT_EQ(boxed({i, j, tap, c}, {row, pixel + VarRef(tap) + VarRef(i), VarRef(c)}),
            "the copy engine cannot do this copy: loop i steps through two dimensions of from");
  EXPECT_EQ(boxed({i, j, e}, {row, FloorDiv(VarRef(j) * 3 + VarRef(e), 16), VarRef(e)}),
            "the copy engine cannot do this copy: index i + at * 8 does not step evenly with its loops");
  // Beyond a window's end is the next row, and no zeros.
  const Expr inside = MakeBinary(Op::kLt, pixel + VarRef(tap), IntConst(18));
  const Buffer tile = std::make_shared<BufferNode>(
      BufferNode{"tile", DType::kF16, {8, 4, 16}, Scope::kShared, SharedMemoryLayout({8, 4, 16}, 2, 0, 32)});
  const Expr load = Load(from, {IntConst(0), pixel + VarRef(tap), VarRef(c)});
  EXPECT_THAT(
      DimsOf(BulkBoxOf(Loop(j, Loop(tap, Loop(c, Put(tile, {VarRef(j), VarRef(tap), VarRef(c)},
                                                     MakeSelect(inside, load, ZeroOf(DType::kF16)))))))),
      HasSubstr("is not an edge of from"));
}

// Pieces of 6 of 24 elements, copied in eights: the last one would end beyond what the engine takes for the
// end.
TEST(BulkBoxTest, OverlappingPiecesEndWithTheTensor) {
  const Buffer from = MakeBuffer("from", DType::kF16, {24, 16});
  const Var i = MakeVar("i", 4), j = MakeVar("j", 8), c = MakeVar("c", 16);
  const Buffer tile = std::make_shared<BufferNode>(
      BufferNode{"tile", DType::kF16, {4, 8, 16}, Scope::kShared, SharedMemoryLayout({4, 8, 16}, 2, 0, 32)});
  const Expr load = Load(from, {VarRef(i) * 6 + VarRef(j), VarRef(c)}),
             piece = MakeSelect(MakeBinary(Op::kLt, VarRef(j), IntConst(6)), load, ZeroOf(DType::kF16));
  EXPECT_EQ(DimsOf(BulkBoxOf(Loop(i, Loop(j, Loop(c, Put(tile, {VarRef(i), VarRef(j), VarRef(c)}, piece)))))),
            "the copy engine cannot do this copy: place i of a window is beyond its 3");
}

}  // namespace
}  // namespace mycc
