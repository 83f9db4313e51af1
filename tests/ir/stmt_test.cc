// Walks and rewrites of the IR.
#include "codegen/ir/stmt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

const Buffer kX = MakeBuffer("x", DType::kF32, {8});
const Buffer kY = MakeBuffer("y", DType::kF32, {8});

// One statement of each kind, each with expressions over `i` and loads of x where it has any.
std::vector<Stmt> OneOfEach(const Var& i) {
  const Expr at = VarRef(i);
  const TileView view{kX, {at}, 1, 1};
  auto block = MakeBlock("b", kY, {IterVar{MakeVar("a0", 8), false, at}}, {at}, Load(kX, {at}));
  const Stmt store = Put(kY, {at}, Load(kX, {at}));
  auto combine = std::make_shared<Combine>(ReduceOp::kSum, kY, std::vector<Expr>{at}, Load(kX, {at}));
  combine->condition = MakeBinary(Op::kLt, at, IntConst(4));
  auto fetching = std::make_shared<Store>(kY, std::vector<Expr>{at}, Load(kX, {at}));
  fetching->fetches = {{Load(kX, {at}), 4}};
  const Buffer lanes = MakeBuffer("x.v", DType::kF32, {4});
  const Var v = MakeVar("v", 4);
  const Stmt loop = Loop(v, Put(kY, {at + VarRef(v)}, Load(lanes, {VarRef(v)})), LoopKind::kVector);
  const VectorMove load{lanes, kX, {at}, 4, {MakeBinary(Op::kLt, at, IntConst(4))}};
  return {
      combine,
      std::make_shared<Vectors>(std::vector<VectorMove>{load}, loop, std::vector<VectorMove>{}, true),
      store,
      std::make_shared<Seq>(std::vector<Stmt>{store, store}),
      std::make_shared<For>(MakeVar("j", 8), at, LoopKind::kSerial, store),
      std::make_shared<If>(MakeBinary(Op::kLt, at, IntConst(4)), store),
      std::make_shared<If>(MakeBinary(Op::kLt, at, IntConst(4)), store, store),
      InScope(MakeBuffer("z", DType::kF32, {1}), store),
      std::make_shared<Alloc>(MakeBuffer("s", DType::kF32, {1}, Scope::kShared), store, 64),
      std::make_shared<Launch>(LaunchShape{.grid = 6, .threads = 64}, store),
      block,
      std::make_shared<Mma>("fma", 1, 1, 1, view, view, view),
      fetching,
      std::make_shared<Bypass>(std::vector<Buffer>{kY}, store),
      std::make_shared<TileMove>(TileMove::kLoad, view, store),
      std::make_shared<TileRegion>(store, store, store, 64),
      std::make_shared<Copy>(store, CopyEngine::kThreads),
      std::make_shared<Copy>(store, CopyEngine::kBulk, at),
      std::make_shared<Roles>(std::vector<Roles::Role>{{"one", store}, {"two", store}}, std::vector<int>{1}),
      std::make_shared<Arrive>(at),
      std::make_shared<Arrive>(at, at, 2, 16),
      std::make_shared<Wait>(at, at),
      std::make_shared<CommitProducts>(),
      std::make_shared<WaitProducts>(1),
      std::make_shared<CommitGroup>(),
      std::make_shared<WaitGroup>(1),
      std::make_shared<Fence>(),
      std::make_shared<Turn>(TurnStep::kTake),
  };
}

TEST(LoopKindTest, NamesAreParsedBack) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kParallel, LoopKind::kVector, LoopKind::kUnroll,
                              LoopKind::kGrid, LoopKind::kThread}) {
    LoopKind parsed = LoopKind::kSerial;
    EXPECT_TRUE(ParseLoopKind(std::string(LoopKindName(kind)), &parsed));
    EXPECT_EQ(parsed, kind);
  }
  LoopKind kind = LoopKind::kVector;
  EXPECT_FALSE(ParseLoopKind("vectorised", &kind));
  EXPECT_EQ(kind, LoopKind::kVector);
}

TEST(MakeSeqTest, FlattensAndDropsNulls) {
  const Stmt a = std::make_shared<Fence>(), b = std::make_shared<Fence>(), c = std::make_shared<Fence>();
  EXPECT_EQ(MakeSeq({a}), a);
  EXPECT_EQ(MakeSeq({nullptr, a, nullptr}), a);
  EXPECT_THAT(As<Seq>(MakeSeq({MakeSeq({a, b}), nullptr, c})).stmts, testing::ElementsAre(a, b, c));
  EXPECT_THAT(As<Seq>(MakeSeq({})).stmts, testing::IsEmpty());
  EXPECT_EQ(MakeSeq({MakeSeq({}), a}), a);
}

TEST(ChildrenTest, WithChildrenPutsThemBack) {
  for (const Stmt& stmt : OneOfEach(MakeVar("i", 8))) {
    const Stmt again = WithChildren(stmt, Children(stmt));
    EXPECT_EQ(PrintStmt(again), PrintStmt(stmt));
    EXPECT_EQ(Children(again), Children(stmt));
  }
}

TEST(VisitStmtsTest, ParentsComeFirstAndFalseSkips) {
  const Stmt leaf = std::make_shared<Fence>(), other = std::make_shared<CommitGroup>();
  const Stmt loop = Loop(MakeVar("i", 2), leaf);
  std::vector<StmtKind> kinds;
  VisitStmts(MakeSeq({loop, other}), [&](const Stmt& stmt) {
    kinds.push_back(stmt->kind);
    return stmt->kind != StmtKind::kFor;
  });
  EXPECT_THAT(kinds, testing::ElementsAre(StmtKind::kSeq, StmtKind::kFor, StmtKind::kCommitGroup));
}

TEST(RewriteStmtsTest, KeepsPointersWhenNothingChanges) {
  for (const Stmt& stmt : OneOfEach(MakeVar("i", 8))) {
    EXPECT_EQ(RewriteStmts(stmt, [](const Stmt&) -> Stmt { return nullptr; }), stmt);
    EXPECT_EQ(MapAllExprs(stmt, [](const Expr& e) { return e; }), stmt);
    EXPECT_EQ(SubstituteVars(stmt, {{MakeVar("other", 8).get(), IntConst(0)}}), stmt);
    EXPECT_EQ(ReplaceBuffer(stmt, MakeBuffer("other", DType::kF32, {8}), kX), stmt);
  }
}

TEST(RewriteStmtsTest, RebuildsOnlyTheChangedPath) {
  const Stmt kept = Loop(MakeVar("i", 2), std::make_shared<Fence>());
  const Stmt changed = Loop(MakeVar("j", 2), std::make_shared<CommitGroup>());
  const Stmt result = RewriteStmts(MakeSeq({kept, changed}), [](const Stmt& stmt) -> Stmt {
    return stmt->kind == StmtKind::kCommitGroup ? std::make_shared<WaitGroup>(0) : nullptr;
  });
  EXPECT_EQ(As<Seq>(result).stmts[0], kept);
  EXPECT_EQ(PrintStmt(result), "for i in 2\n  fence\nfor j in 2\n  wait group until 0 pending\n");
}

TEST(ExprsTest, SubstitutionReachesEveryExpression) {
  const Var i = MakeVar("i", 8);
  for (const Stmt& stmt : OneOfEach(i)) {
    const Stmt replaced = SubstituteVars(stmt, {{i.get(), IntConst(3)}});
    bool left = false, had = false;
    const auto uses = [&](bool* found) {
      return [&i, found](const Stmt& s) {
        ForEachExpr(s, [&](const Expr& e) { *found |= UsesVar(e, i.get()); });
        return true;
      };
    };
    VisitStmts(stmt, uses(&had));
    VisitStmts(replaced, uses(&left));
    EXPECT_FALSE(left) << PrintStmt(replaced);
    EXPECT_EQ(had, replaced != stmt) << PrintStmt(stmt);
  }
}

TEST(ExprsTest, ChangedArrivalsKeepTheirNumbers) {
  const Var i = MakeVar("i", 8);
  const Stmt arrive = std::make_shared<Arrive>(VarRef(i), nullptr, 2, 16);
  EXPECT_EQ(PrintStmt(SubstituteVars(arrive, {{i.get(), IntConst(3)}})),
            "arrive barrier[3] by 2 warpgroups, expects 16 bytes\n");
}

TEST(ForTest, KeepsItsMarksWhateverChanges) {
  const Var i = MakeVar("i", 8), j = MakeVar("j", 6);
  const Stmt store = Put(kY, {IntConst(0)}, F32(1)), other = Put(kY, {IntConst(1)}, F32(2));
  const auto marked =
      For(i, IntConst(8), LoopKind::kSerial, store).Marked({.nontemporal = true, .min_blocks_per_sm = 2});
  const Stmt all =
      marked->With({.var = j, .extent = IntConst(6), .loop_kind = LoopKind::kGrid, .body = other});
  EXPECT_EQ(PrintStmt(all), "block j in 6 past the caches with 2 on an SM\n  y[1] = 2.0\n");
  EXPECT_EQ(PrintStmt(marked->With({.body = other})),
            "for i in 8 past the caches with 2 on an SM\n  y[1] = 2.0\n");
  EXPECT_EQ(PrintStmt(InLoops({marked.get(), &As<For>(all)}, store)),
            "for i in 8 past the caches with 2 on an SM\n  block j in 6 past the caches with 2 on an SM\n"
            "    y[0] = 1.0\n");
  EXPECT_EQ(PrintStmt(marked->Marked({})), "for i in 8\n  y[0] = 1.0\n");
}

TEST(ExprsTest, MapExprsStopsAtChildren) {
  const Var i = MakeVar("i", 8);
  const Stmt store = Put(kY, {VarRef(i)}, F32(1));
  const Stmt loop = std::make_shared<For>(MakeVar("j", 8), VarRef(i), LoopKind::kSerial, store);
  const Stmt mapped = MapExprs(loop, [](const Expr&) { return IntConst(5); });
  EXPECT_TRUE(IsConstInt(As<For>(mapped).extent, 5));
  EXPECT_EQ(As<For>(mapped).body, store);
}

TEST(ReplaceBufferTest, ReplacesEveryUse) {
  const Buffer z = MakeBuffer("z", DType::kF32, {8}, Scope::kLocal);
  for (const Stmt& stmt : OneOfEach(MakeVar("i", 8))) {
    const std::string text = PrintStmt(ReplaceBuffer(ReplaceBuffer(stmt, kX, z), kY, z));
    EXPECT_EQ(text.find("x["), std::string::npos) << text;
    EXPECT_EQ(text.find("y["), std::string::npos) << text;
  }
  EXPECT_EQ(PrintStmt(ReplaceBuffer(InScope(kX, std::make_shared<Fence>()), kX, z)),
            "alloc z: f32[8] local\nfence\n");
  const Stmt arrive = std::make_shared<Arrive>(IntConst(0), nullptr, 1, 0, std::vector<Buffer>{kX});
  EXPECT_EQ(PrintStmt(ReplaceBuffer(arrive, kX, z)), "arrive barrier[0] releasing z\n");
}

TEST(ReplaceBufferTest, ReindexesLoadsStoresAndBlocks) {
  const Buffer packed = MakeBuffer("p", DType::kF32, {2, 4});
  const Var i = MakeVar("i", 8);
  const auto reindex = [](const std::vector<Expr>& at) {
    return std::vector<Expr>{FloorDiv(at[0], 4), Mod(at[0], 4)};
  };
  const Stmt copy = Put(kY, {VarRef(i)}, Load(kX, {VarRef(i)}));
  EXPECT_EQ(PrintStmt(ReplaceBuffer(copy, kX, packed, reindex)), "y[i] = p[i//4,i%4]\n");
  EXPECT_EQ(PrintStmt(ReplaceBuffer(copy, kY, packed, reindex)), "p[i//4,i%4] = x[i]\n");
  const Var a = MakeVar("a0", 8);
  const Stmt block = MakeBlock("b", kY, {IterVar{a, false, VarRef(i)}}, {VarRef(a)}, Load(kX, {VarRef(a)}));
  EXPECT_EQ(PrintStmt(ReplaceBuffer(block, kY, packed, reindex)),
            "block b: p[a0//4,a0%4] = x[a0]\n  a0 in 8 at i\n");
}

TEST(ReplaceBufferTest, MovesTheFurtherAccumulatorsOfATuple) {
  const Buffer best = MakeBuffer("best", DType::kF32, {8}), z = MakeBuffer("z", DType::kF32, {8});
  auto block = MakeBlock("b", kY, {}, {IntConst(0)}, F32(0));
  block->more = {{best, F32(0)}};
  EXPECT_EQ(As<Block>(ReplaceBuffer(block, best, z)).more[0].buffer, z);
  auto combine = std::make_shared<Combine>(ReduceOp::kSum, kY, std::vector<Expr>{IntConst(0)}, F32(0));
  combine->more = {{best, F32(0)}};
  EXPECT_EQ(As<Combine>(ReplaceBuffer(combine, best, z)).more[0].buffer, z);
  EXPECT_EQ(As<Block>(ReplaceBuffer(block, best, z)).out, kY);
}

}  // namespace
}  // namespace mycc
