// Masks of tiles in registers: where they are evaluated, and which ones are left as they are.
#include "codegen/ir/function.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kTurns = 6, kThreads = 4, kElements = 8;

// for j in turns: thread a in threads: for b in elements: t[b] = select(mask, u[..], -inf)
struct Nest {
  Var block = MakeVar("i", 16), turn = MakeVar("j", kTurns), thread = MakeVar("a", kThreads),
      element = MakeVar("b", kElements);
  Buffer t = MakeBuffer("t", DType::kF32, {kElements}, Scope::kLocal);
  Buffer u = MakeBuffer("u", DType::kF32, {kTurns * kElements});
  Expr key = VarRef(turn) * kElements + VarRef(element), row = VarRef(block) * kThreads + VarRef(thread);

  Stmt Of(const Expr& mask) const {
    const Expr value = MakeSelect(mask, Load(u, {key}), F32(-1));
    const Stmt nest =
        Loop(thread, Loop(element, Put(t, {VarRef(element)}, value), LoopKind::kUnroll), LoopKind::kThread);
    return Loop(block, Loop(turn, InScope(t, nest)), LoopKind::kGrid);
  }
  std::string Text(const Expr& mask) const { return PrintStmt(UnmaskTiles(Of(mask))); }
};

TEST(UnmaskTilesTest, CausalMask) {
  const Nest n;
  EXPECT_EQ(n.Text(MakeBinary(Op::kLe, n.key, n.row)), R"(block i in 16
  for j in 6
    alloc t: f32[8] local
    if 0 <= i * 4 - j * 8 - 7
      thread a.inside in 4
        unroll b.inside in 8
          t[b.inside] = u[j*8+b.inside]
    else
      thread a in 4
        unroll b in 8
          t[b] = select(j * 8 + b <= i * 4 + a, u[j*8+b], -1.0)
)");
}

// A window has two edges. A length may be data.
TEST(UnmaskTilesTest, EdgesTogether) {
  const Nest n;
  const Buffer length = MakeBuffer("length", DType::kI64, {16});
  const Expr causal = MakeBinary(Op::kLe, n.key, n.row), near = MakeBinary(Op::kLt, n.row, n.key + 20),
             real = MakeBinary(Op::kLt, n.key, Load(length, {VarRef(n.block)}));
  EXPECT_THAT(n.Text(MakeBinary(Op::kAnd, causal, near)),
              HasSubstr("if 0 <= i * 4 - j * 8 - 7 && 0 <= j * 8 - i * 4 + 16\n"));
  EXPECT_THAT(n.Text(real), HasSubstr("if 0 <= length[i] - j * 8 - 8\n"));
}

TEST(UnmaskTilesTest, OtherMasksStay) {
  const Nest n;
  const Buffer mask = MakeBuffer("mask", DType::kI64, {kTurns * kElements});
  const Buffer own = MakeBuffer("own", DType::kI64, {1}, Scope::kLocal);
  const auto stays = [&](const Expr& condition) { EXPECT_THAT(n.Text(condition), Not(HasSubstr("if "))); };
  stays(MakeBinary(Op::kLt, IntConst(0), Load(mask, {n.key})));                 // data of each element
  stays(MakeBinary(Op::kLt, VarRef(n.element), VarRef(n.thread)));              // the same in all turns
  stays(MakeBinary(Op::kLt, n.key, Load(own, {IntConst(0)})));                  // threads differ
  stays(MakeBinary(Op::kEq, VarRef(n.turn) + VarRef(n.element), IntConst(3)));  // not an edge
}

TEST(UnmaskTilesTest, TilesOfOthersStay) {
  const Nest n;
  const Buffer shared = MakeBuffer("s", DType::kF32, {kElements}, Scope::kShared);
  const Expr value = MakeSelect(MakeBinary(Op::kLe, n.key, n.row), Load(n.u, {n.key}), F32(-1));
  const Stmt nest = Loop(n.turn, Loop(n.thread, Put(shared, {VarRef(n.thread)}, value), LoopKind::kThread));
  EXPECT_EQ(UnmaskTiles(nest), nest);
}

}  // namespace
}  // namespace mycc
