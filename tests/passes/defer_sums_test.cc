// Sums of rows in loops of products: which ones wait for the end of the loop, and what becomes of them. Whole
// kernels are in tests/tuner/gpu_streamed_test.cc.
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

constexpr int64_t kSummedRows = 8, kLanes = 4;

const Var kTurn = MakeVar("j", 3);
const Buffer kSum = MakeBuffer("s", DType::kF32, {kSummedRows}, Scope::kLocal);
const Buffer kOld = MakeBuffer("old", DType::kF32, {kSummedRows}, Scope::kLocal);
const Buffer kFactor = MakeBuffer("f", DType::kF32, {kSummedRows}, Scope::kLocal);
const Buffer kPart = MakeBuffer("p", DType::kF32, {1}, Scope::kLocal);
const Buffer kTile = MakeBuffer("t", DType::kF16, {16, 16}, Scope::kShared);
const Buffer kProducts = MakeBuffer("acc", DType::kF32, {16, 16}, Scope::kAccumulator);
const std::vector<Expr> kFirst = {IntConst(0)};

// Loops r and c of threads around what `body` makes of their variables.
template <typename Body>
Stmt Threads(const char* suffix, const Body& body) {
  const Var r = MakeVar(std::string("r") + suffix, kSummedRows),
            c = MakeVar(std::string("c") + suffix, kLanes);
  return Loop(r, Loop(c, body(VarRef(r), VarRef(c)), LoopKind::kThread), LoopKind::kThread);
}
Stmt Product() {
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  return std::make_shared<Mma>("mma.f16", 16, 16, 16, TileView{kProducts, origin, 16, 1},
                               TileView{kTile, origin, 16, 1}, TileView{kTile, origin, 16, 1});
}
Stmt Keep() {
  return Threads("1", [](const Expr& r, const Expr&) { return Put(kOld, {r}, Load(kSum, {r})); });
}
Stmt Correct(const Expr& more = F32(1)) {
  return Threads("2", [&](const Expr& r, const Expr&) {
    return Put(kSum, {r}, Load(kOld, {r}) * (Load(kFactor, {r}) + more));
  });
}
Stmt Add(ReduceOp op = ReduceOp::kSum) {
  return Threads("3", [&](const Expr& r, const Expr&) {
    return std::make_shared<Combine>(op, kSum, std::vector<Expr>{r}, Load(kPart, kFirst));
  });
}
Stmt Turns(const std::vector<Stmt>& body) { return Loop(kTurn, InScope(kOld, MakeSeq(body))); }

TEST(DeferSumsTest, ThreadsHaveSumsOfTheirOwn) {
  EXPECT_EQ(PrintStmt(DeferSums(Turns({Product(), Keep(), Correct(), Add()}))), R"(alloc s.own: f32[8,4] local
thread r3.own in 8
  thread c3.own in 4
    s.own[r3.own,c3.own] = select(c3.own == 0, s[r3.own], 0.0)
for j in 3
  alloc old.own: f32[8,4] local
  mma mma.f16 16x16x16: acc[0,0]<16,1> += t[0,0]<16,1> * t[0,0]<16,1>
  thread r1 in 8
    thread c1 in 4
      old.own[r1,c1] = s.own[r1,c1]
  thread r2 in 8
    thread c2 in 4
      s.own[r2,c2] = old.own[r2,c2] * (f[r2] + 1.0)
  thread r3 in 8
    thread c3 in 4
      s.own[r3,c3] = s.own[r3,c3] + p[0]
thread r3.clear in 8
  thread c3.clear in 4
    s[r3.clear] = 0.0
thread r3.last in 8
  thread c3.last in 4
    combine s[r3.last] += s.own[r3.last,c3.last]
)");
}

TEST(DeferSumsTest, OtherUsesNeedTheSumInEachTurn) {
  const auto stays = [](const std::vector<Stmt>& body) {
    const Stmt loop = Turns(body);
    EXPECT_EQ(DeferSums(loop), loop) << PrintStmt(loop);
  };
  const Stmt reads =
      Threads("4", [](const Expr& r, const Expr&) { return Put(kFactor, {r}, Load(kSum, {r})); });
  const Stmt tests = Threads("5", [](const Expr& r, const Expr&) {
    return std::make_shared<If>(MakeBinary(Op::kLt, Load(kOld, {r}), F32(1)), Put(kFactor, {r}, F32(2)));
  });
  const Stmt shifts =
      Threads("6", [](const Expr& r, const Expr&) { return Put(kSum, {r}, Load(kSum, {r}) + F32(1)); });
  const Stmt of_threads = Threads("7", [](const Expr& r, const Expr& c) {
    return Put(kSum, {r}, Load(kOld, {r}) * MakeCast(DType::kF32, c));
  });
  stays({Product(), Keep(), Correct(), Add(), reads});
  stays({Product(), Keep(), Correct(), Add(), tests});
  stays({Product(), Keep(), Correct(), Add(), shifts});
  stays({Product(), Keep(), of_threads, Add()});
  stays({Product(), Keep(), Correct(Load(kSum, kFirst)), Add()});
  stays({Product(), Keep(), Correct(), Add(ReduceOp::kMax)});
  stays({Keep(), Correct(), Add()});
}

// A sum that begins in each turn.
TEST(DeferSumsTest, SumsOfATurnStay) {
  const Stmt loop = Loop(kTurn, InScope(kSum, MakeSeq({Product(), Add()})));
  EXPECT_EQ(DeferSums(loop), loop);
}

}  // namespace
}  // namespace mycc
