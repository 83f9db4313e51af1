// Nests over tiles and vectors of rows in the registers of tensor-core threads: a golden of what spreads from
// a product's layout, the interpreter's word on it, where an operand's elements are, and what is refused.
#include <array>
#include <functional>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/fragments.h"
#include "codegen/passes/lower.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/ir/nest.h"
#include "tests/passes/chained_products.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRows = 32, kColumns = 16, kDepth = 16;

Stmt Over(const std::string& name, const std::vector<int64_t>& extents,
          const std::function<Stmt(const std::vector<Expr>&)>& body) {
  std::vector<Var> vars;
  std::vector<Expr> indices;
  for (size_t d = 0; d < extents.size(); ++d) {
    vars.push_back(MakeVar(name + "." + "ij"[d], extents[d]));
    indices.push_back(VarRef(vars.back()));
  }
  Stmt nest = body(indices);
  for (auto var = vars.rbegin(); var != vars.rend(); ++var) nest = Loop(*var, std::move(nest));
  return nest;
}

// A product of two tiles of ones and halves in shared memory, and what follows it.
struct Chain {
  Buffer x = MakeBuffer("x", DType::kF16, {kRows, kDepth}, Scope::kShared);
  Buffer y = MakeBuffer("y", DType::kF16, {kColumns, kDepth}, Scope::kShared);
  Buffer s = MakeBuffer("s", DType::kF32, {kRows, kColumns}, Scope::kAccumulator);
  Buffer e = MakeBuffer("e", DType::kF32, {kRows, kColumns}, Scope::kLocal);
  Buffer p = MakeBuffer("p", DType::kF16, {kRows, kColumns}, Scope::kLocal);
  Buffer m = MakeBuffer("m", DType::kF32, {kRows}, Scope::kLocal);
  Buffer o = MakeBuffer("o", DType::kF32, {kRows, 8}, Scope::kAccumulator);
  Buffer v = MakeBuffer("v", DType::kF16, {kColumns, 8}, Scope::kShared);
  Buffer out = MakeBuffer("out", DType::kF32, {kRows, kColumns});
  Buffer rows = MakeBuffer("rows", DType::kF32, {kRows});
  WarpGrid warps{2, 1}, second_warps{2, 1};
  TileView operand{p, {IntConst(0), IntConst(0)}, kColumns, 1};

  static Stmt Fill(const Buffer& buffer) {
    return Over("fill." + buffer->name, buffer->shape, [&](const std::vector<Expr>& at) {
      const Expr value = MakeCast(DType::kF32, Mod(at[0] * 3 + at[1], 5));
      return Put(buffer, at, buffer->dtype == DType::kF16 ? MakeCast(DType::kF16, value) : value);
    });
  }
  Stmt Scores() const {
    const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
    return MakeSeq(
        {Fill(x), Fill(y), Over("zero", s->shape, [&](const auto& at) { return Put(s, at, F32(0)); }),
         std::make_shared<Mma>("mma.f16", kRows, kColumns, kDepth, TileView{s, origin, kColumns, 1},
                               TileView{x, origin, kDepth, 1}, TileView{y, origin, 1, kDepth}, warps)});
  }
  // o += p * v.
  Stmt Second() const {
    const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
    return MakeSeq({Fill(v), Over("zero2", o->shape, [&](const auto& at) { return Put(o, at, F32(0)); }),
                    std::make_shared<Mma>("mma.f16", kRows, 8, kColumns, TileView{o, origin, 8, 1}, operand,
                                          TileView{v, origin, 8, 1}, second_warps)});
  }
  Stmt ToOperand() const {
    return Over("p", p->shape,
                [&](const auto& at) { return Put(p, at, MakeCast(DType::kF16, Load(s, at))); });
  }
  Function With(std::vector<Stmt> parts) const {
    parts.insert(parts.begin(), Scores());
    Stmt body = MakeSeq(std::move(parts));
    for (const Buffer& buffer : {x, y, s, e, p, m, o, v}) body = InScope(buffer, body);
    const Var block = MakeVar("block", 1);
    return MakeFunction({}, {out, rows}, CleanStmts(Loop(block, body, LoopKind::kGrid)));
  }
  std::string Refusal(std::vector<Stmt> parts) const {
    return std::string(FragmentLoopsOf(With(std::move(parts)).body, TestGpu()).status().message());
  }
  Stmt OutOf(const Buffer& tile) const {
    return Over("out", out->shape, [&](const auto& at) { return Put(out, at, Load(tile, at)); });
  }
};

void ExpectSameMeaning(const Function& function, const Stmt& after) {
  Function changed = function;
  changed.body = after;
  ASSERT_TRUE(VerifyFunction(changed).ok()) << VerifyFunction(changed) << PrintStmt(after);
  const auto expected = RunFunction(function, {}), actual = RunFunction(changed, {}, 5);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status() << PrintStmt(after);
  const absl::Status same = CheckClose(*actual, *expected, 1e-5, "threads");
  EXPECT_TRUE(same.ok()) << same.message() << PrintStmt(after);
}

// Tiles and vectors of rows that have no product of their own, a reduction of columns up to an edge, a vector
// that is computed from itself, and one that is stored.
TEST(FragmentLayoutsTest, SpreadThroughNests) {
  const Chain c;
  const Var i = MakeVar("m.i", kRows), j = MakeVar("m.j", kColumns);
  const std::vector<Expr> row = {VarRef(i)}, at = {VarRef(i), VarRef(j)};
  const Stmt update = Put(c.m, row, MakeBinary(Op::kMax, Load(c.m, row), Load(c.s, at)));
  const Stmt reduce = std::make_shared<If>(MakeBinary(Op::kLt, VarRef(j), IntConst(13)), update);
  const Function function = c.With({
      Loop(i, MakeSeq({Put(c.m, row, F32(-1)), Loop(j, reduce)})),
      Over("e", c.e->shape, [&](const auto& e) { return Put(c.e, e, Load(c.s, e) - Load(c.m, {e[0]})); }),
      Over("twice", c.m->shape, [&](const auto& r) { return Put(c.m, r, Load(c.m, r) * F32(2)); }),
      Over("out", c.out->shape,
           [&](const auto& o) { return Put(c.out, o, Load(c.e, o) + Load(c.m, {o[0]})); }),
      Over("rows", c.rows->shape, [&](const auto& r) { return Put(c.rows, r, Load(c.m, r)); }),
  });
  const absl::StatusOr<Stmt> after = FragmentLoopsOf(function.body, TestGpu());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(MatchesGolden("passes/fragment_spread", PrintStmt(*after)));
  ExpectSameMeaning(function, *after);
}

// Elements of an operand beyond an edge are zeros, as in tiles in shared memory.
TEST(FragmentLayoutsTest, AnOperandIsWhole) {
  const Chain c;
  const Stmt part = Over("p", c.p->shape, [&](const auto& at) {
    return std::make_shared<If>(MakeBinary(Op::kLt, at[1], IntConst(11)),
                                Put(c.p, at, MakeCast(DType::kF16, Load(c.s, at))));
  });
  const Stmt rows = Over("rows", c.rows->shape, [&](const auto& r) { return Put(c.rows, r, F32(0)); });
  const auto out = [&](int64_t from) {
    return Over("out", {kRows, 8}, [&](const auto& at) {
      return Put(c.out, {at[0], at[1] + from}, Load(c.o, at));
    });
  };
  const Function function = c.With({part, c.Second(), out(0), out(8), rows});
  EXPECT_THAT(RunFunction(function, {}).status().message(), HasSubstr("p["));
  const absl::StatusOr<Stmt> after = FragmentLoopsOf(function.body, TestGpu());
  ASSERT_TRUE(after.ok()) << after.status();
  Function changed = function;
  changed.body = *after;
  const auto run = RunFunction(changed, {}, 3);
  ASSERT_TRUE(run.ok()) << run.status() << PrintStmt(*after);
  double expected = 0;
  for (int64_t j = 0; j < 11; ++j) {
    double score = 0;
    for (int64_t k = 0; k < kDepth; ++k) score += (3 * 4 + k) % 5 * ((3 * j + k) % 5);
    expected += score * ((3 * j + 2) % 5);
  }
  EXPECT_EQ((*run)[0].Get(4 * kColumns + 2).f, expected);
}

bool IsGuarded(const Stmt& root, const std::string& name) {
  bool guarded = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    if (stmt->kind != StmtKind::kIf) return true;
    VisitStmts(stmt, [&](const Stmt& inner) {
      const Store* store = DynAs<Store>(inner);
      guarded |= store != nullptr && store->buffer->name == name;
      return true;
    });
    return true;
  });
  return guarded;
}

// Threads compute elements beyond an edge rather than test for it, where that can do no harm.
TEST(FragmentGuardsTest, TilesAreFilledBeyondEdges) {
  const Chain c;
  const auto inside = [](const Expr& column, Stmt stmt) {
    return std::make_shared<If>(MakeBinary(Op::kLt, column, IntConst(11)), std::move(stmt));
  };
  const auto fill = [&](const Expr& more, const Buffer& tile) {
    return Over(tile->name, tile->shape,
                [&](const auto& at) { return inside(at[1], Put(tile, at, Load(c.s, at) + more)); });
  };
  const Stmt zero = Over("zeros", c.out->shape, [&](const auto& at) { return Put(c.out, at, F32(0)); });
  const Stmt out =
      Over("out", c.out->shape, [&](const auto& at) { return inside(at[1], Put(c.out, at, Load(c.e, at))); });
  const Stmt rows = Over("rows", c.rows->shape, [&](const auto& r) { return Put(c.rows, r, F32(0)); });
  const auto lowered = [&](const Stmt& filled) {
    const Function function = c.With({zero, filled, out, rows});
    const absl::StatusOr<Stmt> after = FragmentLoopsOf(function.body, TestGpu());
    EXPECT_TRUE(after.ok()) << after.status();
    ExpectSameMeaning(function, *after);
    EXPECT_TRUE(IsGuarded(*after, "out"));
    return IsGuarded(*after, "e");
  };
  EXPECT_FALSE(lowered(fill(F32(1), c.e)));
  // A tensor in memory may have fewer elements.
  const Expr loaded = MakeCast(DType::kF32, Load(c.x, {IntConst(0), IntConst(0)}));
  EXPECT_TRUE(lowered(fill(loaded, c.e)));
  // The second store is for other elements than the first.
  const Stmt again = Over("again", c.e->shape,
                          [&](const auto& at) { return inside(at[1] + 4, Put(c.e, at, Load(c.s, at))); });
  EXPECT_TRUE(lowered(MakeSeq({fill(F32(1), c.e), again})));
  // In a later turn the elements have the values of an earlier one.
  const Var turn = MakeVar("turn", 2);
  const Stmt in_turns = Over("e", c.e->shape, [&](const auto& at) {
    return inside(at[1] + VarRef(turn) * 5,
                  Put(c.e, at, Load(c.s, at) + MakeCast(DType::kF32, VarRef(turn))));
  });
  EXPECT_TRUE(lowered(Loop(turn, in_turns)));
}

// The 32-bit registers of a left operand, as the PTX ISA has them for mma.m16n8k16 and wgmma: a lane has two
// neighbouring elements of row lane / 4 (registers 0 and 2) or 8 rows below (1 and 3), in columns from lane %
// 4 * 2 (0 and 1) or 8 columns further (2 and 3).
TEST(FragmentLayoutsTest, OperandsAreWhereTheManualHasThem) {
  for (const bool warpgroup : {false, true}) {
    const Instruction& row = *InstructionNamed(warpgroup ? "wgmma.f16" : "mma.f16");
    const FragmentLayout layout{128, 32, {warpgroup ? 1 : 4, 1}, row.sums.fragment};
    for (int64_t t = 0; t < layout.row_tiles(); ++t) {
      for (int64_t step = 0; step < 2; ++step) {
        const std::vector<int64_t> registers = layout.OperandRegisters(row.a.fragment, t, step);
        ASSERT_EQ(registers.size(), 4u);
        for (int i = 0; i < 4; ++i) {
          // The accumulator's register that has the element in the same thread.
          const int64_t row_of = t * row.m + i % 2 * 8, column = step * 16 + i / 2 * 8;
          EXPECT_EQ(registers[i], layout.Register(row_of, column)) << t << " " << step << i;
          EXPECT_EQ(registers[i] + 1, layout.Register(row_of, column + 1));
        }
      }
    }
  }
}

TEST(FragmentLayoutsTest, WhatThreadsCannotShareIsRefused) {
  Chain columns;
  columns.second_warps = {1, 2};
  EXPECT_EQ(columns.Refusal({columns.ToOperand(), columns.Second()}),
            "mma.f16 on 1x2 warps: a tile of 32x8x16; expected rows in 16s, columns in 16s, depth in 16s");
  Chain other;
  other.second_warps = {1, 1};
  EXPECT_EQ(other.Refusal({other.ToOperand(), other.Second()}),
            "the accumulator s: a nest uses 32x16 among 2x1 warps with 32x16 among 1x1 warps of p; "
            "expected the same loops along the rows of both, in the same threads");
  Chain across;
  across.operand.row_stride = 1;
  across.operand.col_stride = kRows;
  EXPECT_EQ(
      across.Refusal({across.ToOperand(), across.Second()}),
      "the tile in registers p: as a product's left operand, expected a whole tile of 32x16 elements of "
      "16 bits, row by row");
  Chain right;
  right.y = right.p;
  EXPECT_EQ(right.Refusal({}), "the tile in registers p: the right operand of a product is in shared memory");
  Chain shared;
  shared.o = MakeBuffer("o", DType::kF32, shared.o->shape, Scope::kShared);
  EXPECT_EQ(shared.Refusal({shared.ToOperand(), shared.Second()}),
            "the accumulator o: a product has its sums in registers");
}

TEST(FragmentLayoutsTest, AnOperandAmongWarpsOfColumnsIsRefused) {
  Chain c;
  c.o = MakeBuffer("o", DType::kF32, {kRows, 16}, Scope::kAccumulator);
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  const Stmt product = std::make_shared<Mma>("mma.f16", kRows, 16, kColumns, TileView{c.o, origin, 16, 1},
                                             c.operand, TileView{c.x, origin, kDepth, 1}, WarpGrid{1, 2});
  EXPECT_EQ(c.Refusal({c.ToOperand(), product}),
            "the tile in registers p: the 2 warps along the columns of the product would need each other's "
            "parts of its operand; expected 1");
}

TEST(FragmentNestsTest, WhatIsNoNestOverRowsAndColumnsIsRefused) {
  const Chain c;
  const auto over_s = [&](const auto& body) { return Over("n", c.s->shape, body); };
  const std::string outside = "it is used outside of a nest of loops over the whole tile";
  // Rows in place of columns; a part of the columns; an element by itself.
  EXPECT_EQ(c.Refusal({Over("n", {kColumns, kRows},
                            [&](const auto& at) {
                              return Put(c.out, {at[1], at[0]}, Load(c.s, {at[1], at[0]}));
                            }),
                       c.OutOf(c.s)}),
            "");
  EXPECT_EQ(c.Refusal({Over("n", {kRows, 8}, [&](const auto& at) { return Put(c.out, at, Load(c.s, at)); })}),
            "the accumulator s: " + outside);
  EXPECT_EQ(c.Refusal({over_s([&](const auto& at) {
    return Put(c.out, at, Load(c.s, {at[0], IntConst(0)}));
  })}),
            "the accumulator s: " + outside);
  EXPECT_EQ(c.Refusal({Put(c.out, {IntConst(0), IntConst(0)}, Load(c.s, {IntConst(0), IntConst(0)}))}),
            "the accumulator s: " + outside);
  // The last column's value, by luck.
  EXPECT_EQ(
      c.Refusal({over_s([&](const auto& at) { return Put(c.m, {at[0]}, Load(c.s, at)); }),
                 Over("rows", c.rows->shape, [&](const auto& r) { return Put(c.rows, r, Load(c.m, r)); })}),
      "the tile in registers m: it has one element for each row; expected a reduction of the columns");
}

// Two statements in the same loops become two nests, unless an iteration needs what another computed.
TEST(FragmentNestsTest, StatementsThatShareElementsOfIterationsAreRefused) {
  const Chain c;
  const Var i = MakeVar("i", kRows), j = MakeVar("j", kColumns);
  const std::vector<Expr> row = {VarRef(i)}, at = {VarRef(i), VarRef(j)};
  const Stmt update = Put(c.m, row, MakeBinary(Op::kMax, Load(c.m, row), Load(c.s, at)));
  const Stmt store = Put(c.out, at, Load(c.m, row));
  EXPECT_EQ(c.Refusal({Loop(i, Loop(j, MakeSeq({update, store})))}),
            "statements in loop j share elements of m between its iterations, so that threads cannot execute "
            "one after the other");
}

// Some instructions can overwrite their sums. Zeros that something else uses stay.
TEST(FragmentLoopsTest, ProductsBeginTheirSums) {
  const Buffer s = MakeBuffer("s", DType::kF32, {64, 16}, Scope::kAccumulator);
  const Buffer x = MakeBuffer("x", DType::kF16, {64, 16}, Scope::kShared);
  const Buffer out = MakeBuffer("out", DType::kF32, {64, 16});
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  const auto text = [&](const std::string& instruction, const Stmt& between, double value) {
    const Stmt zero = Over("zero", s->shape, [&](const auto& at) { return Put(s, at, F32(value)); });
    const Stmt product = std::make_shared<Mma>(instruction, 64, 16, 16, TileView{s, origin, 16, 1},
                                               TileView{x, origin, 16, 1}, TileView{x, origin, 1, 16});
    const Stmt body = InScope(s, MakeSeq({zero, between, product}));
    return PrintStmt(FragmentLoopsOf(body, TestGpu()).value());
  };
  const Stmt use = Over("out", out->shape, [&](const auto& at) { return Put(out, at, Load(s, at)); });
  const std::string begins = "s[0,0]<16,1> = x", adds = "s[0,0]<16,1> += x";
  EXPECT_THAT(text("wgmma.f16", nullptr, 0), AllOf(HasSubstr(begins), Not(HasSubstr("zero"))));
  EXPECT_THAT(text("mma.f16", nullptr, 0), AllOf(HasSubstr(adds), HasSubstr("zero")));
  EXPECT_THAT(text("wgmma.f16", use, 0), AllOf(HasSubstr(adds), HasSubstr("zero")));
  EXPECT_THAT(text("wgmma.f16", nullptr, 1), AllOf(HasSubstr(adds), HasSubstr("zero")));
}

// Both products of an attention in one kernel.
void CheckAttention(const std::string& golden, const std::string& steps) {
  const Workload canonical = CanonicalWorkload(kAttention);
  const Trace trace = ParseTrace("v1\n" + steps).value();
  const absl::StatusOr<Schedule> schedule = Replay(canonical, TestGpu(), trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), TestGpu());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(MatchesGolden("passes/" + golden, PrintLowered(*lowered)));
  const absl::Status same = CheckFunction(canonical, WholeFunction(*lowered), 1e-2);
  EXPECT_TRUE(same.ok()) << same.message();
}

TEST(ChainedProductsLowering, OfWarps) { CheckAttention("mma_chained", AttentionOfWarps()); }
TEST(ChainedProductsLowering, OfAWarpgroup) { CheckAttention("wgmma_chained", AttentionOfAWarpgroup()); }

}  // namespace
}  // namespace mycc
