// The pseudocode of the IR.
#include <gtest/gtest.h>

#include "codegen/ir/pipeline_stmts.h"
#include "tests/golden/golden.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

const Buffer kX = MakeBuffer("x", DType::kF32, {30});
const Buffer kY = MakeBuffer("y", DType::kF32, {30});

TEST(PrintStmtTest, LoopsShowKindRangeAndInstruction) {
  const Var i = MakeVar("i", 8);
  const Stmt store = Put(kY, {VarRef(i)}, F32(0));
  EXPECT_EQ(PrintStmt(Loop(i, store, LoopKind::kParallel)), "parallel i in 8\n  y[i] = 0.0\n");
  EXPECT_EQ(PrintStmt(Loop(i, store, LoopKind::kUnroll)), "unroll i in 8\n  y[i] = 0.0\n");
  EXPECT_EQ(PrintStmt(std::make_shared<For>(i, IntConst(6), LoopKind::kSerial, store)),
            "for i in 6 (of 8)\n  y[i] = 0.0\n");
  EXPECT_EQ(PrintStmt(For(i, IntConst(8), LoopKind::kVector, store).Marked({.instruction = "avx512_fma"})),
            "vector i in 8 by avx512_fma\n  y[i] = 0.0\n");
}

TEST(PrintStmtTest, BlocksShowBindingsThatAreNotTheirOwnLoops) {
  const Var outer = MakeVar("t1.a0.0", 4), inner = MakeVar("t1.a0.1", 8), r = MakeVar("t1.r0", 3);
  const Var a0 = MakeVar("a0", 30), r0 = MakeVar("r0", 3);
  auto block = MakeBlock(
      "t1", kY, {IterVar{a0, false, VarRef(outer) * 8 + VarRef(inner)}, IterVar{r0, true, VarRef(r)}},
      {VarRef(a0)}, Load(kX, {VarRef(a0)}));
  block->reduce = ReduceOp::kMax;
  EXPECT_EQ(PrintStmt(block), "block t1: y[a0] max= x[a0]\n  a0 in 30 at t1.a0.0 * 8 + t1.a0.1\n");
  // A reduction over a variable that is not named as one, and a domain smaller than the loop, are said.
  block->iters = {IterVar{a0, true, VarRef(MakeVar("t1.a0", 30))}};
  EXPECT_EQ(PrintStmt(block), "block t1: y[a0] max= x[a0]\n  reduce a0 in 30 at t1.a0\n");
  block->iters = {IterVar{a0, false, VarRef(MakeVar("t1.a0", 32))}};
  EXPECT_EQ(PrintStmt(block), "block t1: y[a0] max= x[a0]\n  a0 in 30 at t1.a0\n");
}

TEST(PrintStmtTest, AllocsIndentOnlyWhereTheyEndEarly) {
  const Buffer z = MakeBuffer("z", DType::kBF16, {2, 3}, Scope::kShared);
  const Stmt fence = std::make_shared<Fence>();
  EXPECT_EQ(PrintStmt(MakeSeq({fence, InScope(z, fence)})), "fence\nalloc z: bf16[2,3] shared\nfence\n");
  EXPECT_EQ(PrintStmt(MakeSeq({InScope(z, fence), fence})), "alloc z: bf16[2,3] shared\n  fence\nfence\n");
}

TEST(PrintStmtTest, PipelineOfEveryStatement) {
  const Var i = MakeVar("i", 4);
  const Buffer tile = MakeBuffer("tile", DType::kF32, {2, 8}, Scope::kShared),
               acc = MakeBuffer("acc", DType::kF32, {1, 1});
  const Var j = MakeVar("j", 4);
  const auto copy = [&](CopyEngine engine, const Expr& barrier) {
    const Stmt body = std::make_shared<For>(
        j, IntConst(4), LoopKind::kSerial,
        Put(tile, {Mod(VarRef(i), 2), VarRef(j)}, Load(kX, {VarRef(i) * 4 + VarRef(j)})));
    return std::make_shared<Copy>(body, engine, barrier);
  };
  const TileView slot{tile, {Mod(VarRef(i), 2), IntConst(0)}, 8, 1}, from{kX, {VarRef(i) * 4}, 4, 1};
  const TileView sum{acc, {IntConst(0), IntConst(0)}, 1, 1};
  const Stmt producer =
      Loop(i, MakeSeq({std::make_shared<Wait>(Mod(VarRef(i), 2), FloorDiv(VarRef(i), 2) - 1),
                       copy(CopyEngine::kBulk, Mod(VarRef(i), 2)),
                       std::make_shared<Arrive>(Mod(VarRef(i), 2), nullptr, 2, 16)}));
  const auto running = std::make_shared<Mma>("wgmma.f16", 1, 1, 4, sum, from, slot);
  running->is_async = true;
  const Stmt consumer =
      MakeSeq({copy(CopyEngine::kThreads, nullptr), std::make_shared<CommitGroup>(),
               std::make_shared<WaitGroup>(1), std::make_shared<Fence>(), running,
               std::make_shared<Turn>(TurnStep::kTake), std::make_shared<CommitProducts>(),
               std::make_shared<WaitProducts>(1), std::make_shared<Turn>(TurnStep::kPass),
               std::make_shared<Arrive>(IntConst(0), nullptr, 1, 0, std::vector<Buffer>{tile}),
               std::make_shared<Arrive>(IntConst(0), nullptr, 2, 0, std::vector<Buffer>{tile}, true),
               std::make_shared<If>(MakeBinary(Op::kLt, VarRef(i), IntConst(3)),
                                    std::make_shared<Mma>("fma", 1, 1, 4, sum, from, slot),
                                    std::make_shared<Fence>())});
  const Stmt roles = std::make_shared<Roles>(
      std::vector<Roles::Role>{{"load", producer}, {"compute", consumer}}, std::vector<int>{1, 2});
  EXPECT_TRUE(
      MatchesGolden("ir/print_pipeline", PrintFunction(MakeFunction({kX}, {kY}, InScope(tile, roles)))));
}

}  // namespace
}  // namespace mycc
