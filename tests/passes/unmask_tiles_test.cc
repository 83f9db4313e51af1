// Masks of tiles in registers: where they are evaluated, and which ones are left as they are.
#include "absl/strings/str_cat.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using ::testing::AllOf;
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

// for j in turns: acc += ..; thread a: for b: t[b] = select(mask, u[..], -1), if guard: s = s + t[b]
std::string TurnsOf(const Nest& n, const Expr& mask, const Expr& guard, bool adds_up = true) {
  const Buffer acc = MakeBuffer("acc", DType::kF32, {16, 16}, Scope::kAccumulator);
  const Buffer x = MakeBuffer("x", DType::kF16, {16, 16}, Scope::kShared);
  const Buffer s = MakeBuffer("s", DType::kF32, {1}, Scope::kLocal);
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)}, first = {IntConst(0)};
  auto product = std::make_shared<Mma>("mma.f16", 16, 16, 16, TileView{acc, origin, 16, 1},
                                       TileView{x, origin, 16, 1}, TileView{x, origin, 16, 1});
  product->first = !adds_up;
  const Stmt masked = Put(n.t, {VarRef(n.element)}, MakeSelect(mask, Load(n.u, {n.key}), F32(-1)));
  const Stmt added =
      std::make_shared<If>(guard, Put(s, first, Load(s, first) + Load(n.t, {VarRef(n.element)})));
  const Stmt nest =
      Loop(n.thread, Loop(n.element, MakeSeq({masked, added}), LoopKind::kUnroll), LoopKind::kThread);
  const Stmt role = InScope(acc, InScope(s, InScope(n.t, Loop(n.turn, MakeSeq({product, nest})))));
  const Stmt roles =
      std::make_shared<Roles>(std::vector<Roles::Role>{{"compute", role}}, std::vector<int>{1});
  return PrintStmt(As<Roles>(As<For>(UnmaskTiles(Loop(n.block, roles, LoopKind::kGrid))).body).roles[0].body);
}

constexpr char kProduct[] = "mma mma.f16 16x16x16: acc[0,0]<16,1> += x[0,0]<16,1> * x[0,0]<16,1>\n";

TEST(UnmaskTilesTest, ALoopOfProductsIsCutAtTheEdge) {
  const Nest n;
  const Expr causal = MakeBinary(Op::kLe, n.key, n.row), real = MakeBinary(Op::kLt, n.key, IntConst(44));
  EXPECT_EQ(TurnsOf(n, causal, real), absl::StrCat(R"(alloc acc: f32[16,16] accumulator
alloc s: f32[1] local
alloc t: f32[8] local
let j.inside = min(min(6, i // 2), 5)
for j in j.inside (of 6)
  )",
                                                   kProduct, R"(  thread a in 4
    unroll b in 8
      t[b] = u[j*8+b]
      s[0] = s[0] + t[b]
for j.edge in j.inside * -1 + 6 (of 6)
  )",
                                                   kProduct, R"(  thread a.edge in 4
    unroll b.edge in 8
      t[b.edge] = select(j.edge * 8 + j.inside * 8 + b.edge <= i * 4 + a.edge, u[j.edge*8+j.inside*8+b.edge], -1.0)
      if j.edge * 8 + j.inside * 8 + b.edge < 44
        s[0] = s[0] + t[b.edge]
)"));
  // A window hides the first keys, too.
  const Expr near = MakeBinary(Op::kLt, n.row, n.key + 20);
  EXPECT_THAT(
      TurnsOf(n, MakeBinary(Op::kAnd, causal, near), real),
      AllOf(HasSubstr("\nfor j.start in j.first (of 6)\n"),
            HasSubstr("\nfor j in j.inside - j.first (of 6)\n"),
            HasSubstr("\nfor j.edge in j.inside * -1 + 6 (of 6)\n"), HasSubstr("u[j*8+j.first*8+b]\n")));
  // Only the first keys are hidden: there is no edge after the others.
  EXPECT_THAT(TurnsOf(n, near, BoolConst(true)),
              AllOf(HasSubstr("\nfor j.start in j.first (of 6)\n"), Not(HasSubstr("j.edge"))));
  // Without another mask all turns but the last are inside.
  EXPECT_THAT(TurnsOf(n, real, real), AllOf(HasSubstr("\nfor j in 5\n"), HasSubstr("\nfor j.edge in 1\n")));
}

// Masks that the turn does not decide stay, and so do turns with sums of their own.
TEST(UnmaskTilesTest, OtherLoopsOfProductsStay) {
  const Nest n;
  const Expr causal = MakeBinary(Op::kLe, n.key, n.row);
  EXPECT_THAT(TurnsOf(n, MakeBinary(Op::kLt, VarRef(n.element), VarRef(n.thread)), BoolConst(true)),
              Not(HasSubstr("edge")));
  EXPECT_THAT(TurnsOf(n, causal, causal, /*adds_up=*/false), Not(HasSubstr("edge")));
}

// A window has two edges. A length may be data.
TEST(UnmaskTilesTest, EdgesTogether) {
  const Nest n;
  const Buffer length = MakeBuffer("length", DType::kI64, {16});
  const Expr causal = MakeBinary(Op::kLe, n.key, n.row), near = MakeBinary(Op::kLt, n.row, n.key + 20),
             real = MakeBinary(Op::kLt, n.key, Load(length, {VarRef(n.block)}));
  EXPECT_THAT(n.Text(MakeBinary(Op::kAnd, causal, near)),
              HasSubstr("if 0 <= i * 4 - j * 8 - 7 && 0 <= j * 8 - i * 4 + 16\n"));
  // The least i64 less 8 would be a large number.
  EXPECT_THAT(
      n.Text(real),
      HasSubstr("if 0 <= min(2305843009213693952, max(-2305843009213693952, length[i])) - j * 8 - 8\n"));
  const Buffer narrow = MakeBuffer("narrow", DType::kI32, {16});
  EXPECT_THAT(n.Text(MakeBinary(Op::kLt, MakeCast(DType::kI32, n.key), Load(narrow, {VarRef(n.block)}))),
              HasSubstr("if 0 <= i64(narrow[i]) - j * 8 - 8\n"));
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
