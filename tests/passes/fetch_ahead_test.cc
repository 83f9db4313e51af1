// Fetches of tiles of registers move up to the product in front of them; everything else stays.
#include "codegen/ir/pipeline_stmts.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/passes/tensor_core_product.h"

namespace mycc {
namespace {

const Var kFetchTurn = MakeVar("j", 4), kFetchedRow = MakeVar("i", 8);
const Buffer kFetchedBias = MakeBuffer("bias", DType::kF32, {8, 4}, Scope::kGlobal);
const Buffer kFetchScores = MakeBuffer("s", DType::kF32, {64, 64}, Scope::kAccumulator);
const Buffer kFetchKeys = MakeBuffer("k", DType::kF16, {64, 64}, Scope::kShared);
const Buffer kFetchedTile = MakeBuffer("r", DType::kF32, {8}, Scope::kLocal);

Stmt FetchProduct() {
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  auto mma = std::make_shared<Mma>("wgmma.f16", 64, 64, 64, TileView{kFetchScores, origin, 64, 1},
                                   TileView{kFetchKeys, origin, 64, 1}, TileView{kFetchKeys, origin, 64, 1});
  mma->warps = {1, 1};
  return mma;
}
Stmt ReleaseKeys() {
  return std::make_shared<Arrive>(IntConst(0), nullptr, 1, 0, std::vector<Buffer>{kFetchKeys});
}
Stmt FetchNest(const Expr& value) {
  return Loop(kFetchedRow, Put(kFetchedTile, {VarRef(kFetchedRow)}, value));
}
Expr BiasOfTurn() { return Load(kFetchedBias, {VarRef(kFetchedRow), VarRef(kFetchTurn)}); }

std::string FetchMoved(const std::vector<Stmt>& turn) {
  return PrintStmt(FetchAhead(Loop(kFetchTurn, MakeSeq(turn))));
}

TEST(FetchAheadTest, BeforeTheRelease) {
  EXPECT_EQ(FetchMoved({FetchProduct(), ReleaseKeys(), FetchNest(BiasOfTurn())}),
            PrintStmt(Loop(kFetchTurn, MakeSeq({FetchProduct(), FetchNest(BiasOfTurn()), ReleaseKeys()}))));
}

// A persistent block releases its queries in the last turn.
TEST(FetchAheadTest, BeforeAReleaseInSomeTurns) {
  const Stmt last =
      std::make_shared<If>(MakeBinary(Op::kLe, IntConst(4), VarRef(kFetchTurn) + 1), ReleaseKeys());
  EXPECT_EQ(
      FetchMoved({FetchProduct(), ReleaseKeys(), last, FetchNest(BiasOfTurn())}),
      PrintStmt(Loop(kFetchTurn, MakeSeq({FetchProduct(), FetchNest(BiasOfTurn()), ReleaseKeys(), last}))));
}

TEST(FetchAheadTest, OthersStay) {
  // It needs the product; it stands before one; and another nest writes the tensor that it reads.
  const Stmt uses = FetchNest(Load(kFetchScores, {VarRef(kFetchedRow), IntConst(0)}));
  const Stmt writes = Loop(
      kFetchedRow, Put(kFetchedBias, {VarRef(kFetchedRow), VarRef(kFetchTurn)}, FloatConst(0, DType::kF32)));
  for (const std::vector<Stmt>& turn :
       std::vector<std::vector<Stmt>>{{FetchProduct(), ReleaseKeys(), uses},
                                      {ReleaseKeys(), FetchNest(BiasOfTurn())},
                                      {FetchProduct(), ReleaseKeys(), FetchNest(BiasOfTurn()), writes}})
    EXPECT_EQ(FetchMoved(turn), PrintStmt(Loop(kFetchTurn, MakeSeq(turn))));
}

}  // namespace
}  // namespace mycc
