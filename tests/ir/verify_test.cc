// Each rule of the IR, broken once.
#include "codegen/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/vector_stmts.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr int64_t kN = 8;
const Buffer kX = MakeBuffer("x", DType::kF32, {kN});
const Buffer kY = MakeBuffer("y", DType::kF32, {kN});
const Var kI = MakeVar("i", kN);
const Expr kAt = VarRef(kI);

void ExpectBroken(const Stmt& body, const std::string& message) {
  const absl::Status status = VerifyFunction(MakeFunction({kX}, {kY}, body));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << PrintStmt(body);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

void ExpectSound(const Stmt& body) {
  const absl::Status status = VerifyFunction(MakeFunction({kX}, {kY}, body));
  EXPECT_TRUE(status.ok()) << status << "\n" << PrintStmt(body);
}

Stmt When(const Expr& condition, const Stmt& then, const Stmt& otherwise = nullptr) {
  return std::make_shared<If>(condition, then, otherwise);
}
Expr Less(const Expr& a, const Expr& b) { return MakeBinary(Op::kLt, a, b); }
Expr LessEqual(const Expr& a, const Expr& b) { return MakeBinary(Op::kLe, a, b); }
Stmt Nothing() { return MakeSeq({}); }
Stmt SetY(const Expr& at) { return Put(kY, {at}, F32(0)); }

TEST(VerifyTest, ScopesOfVariables) {
  ExpectSound(Loop(kI, SetY(kAt)));
  ExpectBroken(SetY(kAt), "variable i is used outside its scope; in \"y[i] = 0.0\"");
  ExpectBroken(MakeSeq({Loop(kI, Nothing()), SetY(kAt)}), "variable i is used outside its scope");
  ExpectBroken(Loop(kI, Loop(kI, Nothing())), "the variable of loop i is already in scope");
}

TEST(VerifyTest, ScopesOfBuffers) {
  const Buffer z = MakeBuffer("z", DType::kF32, {kN});
  const Stmt write = Loop(kI, Put(z, {kAt}, F32(0)));
  ExpectSound(InScope(z, write));
  ExpectBroken(write, "buffer z is used outside its scope");
  ExpectBroken(MakeSeq({InScope(z, Nothing()), write}), "buffer z is used outside its scope");
  ExpectBroken(Loop(kI, Put(kY, {kAt}, Load(z, {kAt}))), "buffer z is used outside its scope");
  ExpectBroken(InScope(z, InScope(z, Nothing())), "buffer z is already in scope");
  BufferNode own = *z;
  own.layout.dims = {{Mode{kN, 0}}};
  ExpectBroken(InScope(std::make_shared<BufferNode>(own), Nothing()), "a place of its own for each element");
  own.layout = Layout::RowMajor({kN, 2});
  ExpectBroken(InScope(std::make_shared<BufferNode>(own), Nothing()), "buffer z lies as ");
  ExpectBroken(Loop(kI, Put(kX, {kAt}, F32(0))), "input x is written");
}

// A block copying x to y, element `index` of both, bound to `binding`.
std::shared_ptr<Block> CopyBlock(const std::string& name, const Expr& binding, int64_t domain = kN) {
  const Var a = MakeVar("a0", domain);
  return MakeBlock(name, kY, {IterVar{a, false, binding}}, {VarRef(a)}, Load(kX, {VarRef(a)}));
}

TEST(VerifyTest, NamesAreUniqueInSchedules) {
  const Var same = MakeVar("i", kN), other = MakeVar("j", kN);
  const Stmt loop = Loop(kI, CopyBlock("b", kAt));
  ExpectSound(MakeSeq({loop, Loop(other, CopyBlock("c", VarRef(other)))}));
  ExpectBroken(MakeSeq({loop, Loop(same, CopyBlock("c", VarRef(same)))}), "two loops are named i");
  ExpectBroken(MakeSeq({loop, Loop(other, CopyBlock("b", VarRef(other)))}), "two blocks are named b");
  // Lowering may clone loops.
  ExpectSound(MakeSeq({Loop(kI, SetY(kAt)), Loop(same, SetY(VarRef(same)))}));
}

TEST(VerifyTest, BindingsAreOverEnclosingLoops) {
  ExpectBroken(CopyBlock("b", kAt), "variable i is used outside its scope; in block b");
  const Var a = MakeVar("a0", kN), b = MakeVar("a1", kN);
  const Stmt chained =
      MakeBlock("b", kY, {IterVar{a, false, kAt}, IterVar{b, false, VarRef(a)}}, {VarRef(b)}, F32(0));
  ExpectBroken(Loop(kI, chained), "variable a0 is used outside its scope");
  const Stmt twice =
      MakeBlock("b", kY, {IterVar{a, false, kAt}, IterVar{a, false, kAt}}, {VarRef(a)}, F32(0));
  ExpectBroken(Loop(kI, twice), "iteration variable a0 is already in scope");
  ExpectBroken(Loop(kI, CopyBlock("b", IntConst(0, DType::kI32))), "the binding of a0 is no i64");
}

TEST(VerifyTest, TypesAgree) {
  ExpectBroken(Loop(kI, Put(kY, {kAt}, FloatConst(0, DType::kF16))), "f16 is stored into y of f32");
  ExpectBroken(Loop(kI, MakeBlock("b", kY, {}, {kAt}, FloatConst(0, DType::kF16))),
               "f16 is accumulated in y of f32");
  ExpectBroken(When(IntConst(1), Nothing()), "the condition is no bool");
  ExpectBroken(SetY(IntConst(0, DType::kI32)), "an index of y is no i64");
  ExpectBroken(std::make_shared<For>(kI, IntConst(1, DType::kI32), LoopKind::kSerial, Nothing()),
               "the extent of i is no i64");
}

TEST(VerifyTest, RanksAgree) {
  ExpectBroken(Put(kY, {IntConst(0), IntConst(0)}, F32(0)), "y of rank 1 is indexed by 2");
  ExpectBroken(MakeBlock("b", kY, {}, {}, F32(0)), "y of rank 1 is indexed by 0");
}

TEST(VerifyTest, IndicesThatEscapeAreReported) {
  ExpectBroken(Loop(kI, SetY(kAt + 1)), "index 0 of y, i + 1, reaches 1..8, outside 0..7");
  ExpectBroken(Loop(kI, SetY(kAt - 1)), "index 0 of y, i - 1, reaches -1..6");
  ExpectBroken(Loop(kI, Put(kY, {kAt}, Load(kX, {kAt * 2}))), "index 0 of x, i * 2, reaches 0..14");
  ExpectBroken(SetY(IntConst(kN)), "index 0 of y, 8, reaches 8..8");
}

TEST(VerifyTest, GuardsAreCounted) {
  ExpectSound(Loop(kI, When(Less(kAt, IntConst(kN - 1)), SetY(kAt + 1))));
  ExpectSound(Loop(kI, When(MakeBinary(Op::kAnd, LessEqual(IntConst(2), kAt), Less(kAt, IntConst(6))),
                            SetY(kAt + 2), Nothing())));
  ExpectSound(Loop(kI, When(LessEqual(IntConst(kN - 1), kAt), Nothing(), SetY(kAt + 1))));
  ExpectSound(Loop(kI, Put(kY, {kAt}, MakeSelect(Less(kAt, IntConst(1)), F32(0), Load(kX, {kAt - 1})))));
  // Sums of loops under a guard on the same sum.
  const Var outer = MakeVar("o", 3), inner = MakeVar("n", 3);
  const Expr sum = VarRef(outer) * 3 + VarRef(inner);
  ExpectSound(Loop(outer, Loop(inner, When(Less(sum, IntConst(kN)), SetY(sum)))));
  ExpectBroken(Loop(outer, Loop(inner, SetY(sum))), "reaches 0..8");
  // The other arm has the opposite condition, and a guard ends with its statement.
  ExpectBroken(Loop(kI, MakeSeq({When(Less(kAt, IntConst(kN - 1)), Nothing()), SetY(kAt + 1)})),
               "reaches 1..8");
}

TEST(VerifyTest, WhatGuardsLeaveOpenIsLeftToRunning) {
  // Inside, but by an argument of number theory.
  const Expr odd = MakeBinary(Op::kEq, Mod(kAt, 2), IntConst(0));
  ExpectSound(Loop(kI, When(odd, SetY(kAt + 1))));
}

TEST(VerifyTest, DomainsOfBlocksAreGuards) {
  const Var outer = MakeVar("o", 3), inner = MakeVar("n", 3);
  const Expr sum = VarRef(outer) * 3 + VarRef(inner);
  ExpectSound(Loop(outer, Loop(inner, CopyBlock("b", sum))));
  ExpectBroken(Loop(outer, Loop(inner, CopyBlock("b", sum, 9))), "index 0 of x");
  // A buffer that holds a region: indices relative to its loop are in range only by the binding.
  const Buffer region = MakeBuffer("region", DType::kF32, {3});
  const Var a = MakeVar("a0", kN);
  const Stmt moved =
      MakeBlock("b", region, {IterVar{a, false, sum}}, {VarRef(a) - VarRef(outer) * 3}, F32(0));
  ExpectSound(Loop(outer, InScope(region, Loop(inner, moved))));
  const Stmt displaced =
      MakeBlock("b", region, {IterVar{MakeVar("a0", 9), false, sum}}, {sum - VarRef(outer) * 3 + 1}, F32(0));
  ExpectBroken(Loop(outer, InScope(region, Loop(inner, displaced))),
               "index 0 of region, n + 1, reaches 1..3");
}

TEST(VerifyTest, ArmsThatAreNeverTakenAreNotRead) {
  const Var a = MakeVar("a0", kN);
  const Expr beyond = VarRef(a) + 100;
  const auto block = [&](const Expr& condition) {
    const Expr value = MakeSelect(condition, Load(kX, {beyond}), F32(0));
    return Loop(kI, MakeBlock("b", kY, {IterVar{a, false, kAt}}, {VarRef(a)}, value));
  };
  ExpectSound(block(Less(beyond, IntConst(5))));
  ExpectBroken(block(Less(IntConst(5), beyond)), "index 0 of x, i + 100, reaches 100..107");
}

TEST(VerifyTest, LoopsStayInTheirVariablesRange) {
  const auto loop = [](const Expr& extent, LoopKind kind) {
    return std::make_shared<For>(kI, extent, kind, SetY(kAt));
  };
  ExpectSound(loop(IntConst(5), LoopKind::kVector));
  ExpectBroken(loop(IntConst(9), LoopKind::kSerial), "loop i of 9 iterations: its variable's range is 8");
  const Var outer = MakeVar("o", 3);
  const Expr tail = MakeBinary(Op::kMin, IntConst(4), IntConst(10) - VarRef(outer) * 4);
  ExpectSound(Loop(outer, loop(tail, LoopKind::kSerial)));
  ExpectBroken(Loop(outer, loop(tail, LoopKind::kVector)), "vector loop i has no constant extent");
}

TEST(VerifyTest, TailsBoundTheirVariable) {
  const Var outer = MakeVar("o", 2), inner = MakeVar("n", 6);
  const Expr sum = VarRef(outer) * 6 + VarRef(inner);
  const Expr rest = MakeBinary(Op::kMin, IntConst(6), IntConst(kN) - VarRef(outer) * 6);
  ExpectSound(Loop(outer, std::make_shared<For>(inner, rest, LoopKind::kSerial, SetY(sum))));
  ExpectSound(std::make_shared<For>(kI, IntConst(kN - 1), LoopKind::kSerial, SetY(kAt + 1)));
}

TEST(VerifyTest, AccumulatorsAreIndexedByConstantExtents) {
  const Buffer acc = MakeBuffer("acc", DType::kF32, {kN}, Scope::kAccumulator);
  const Var outer = MakeVar("o", 2);
  const Expr tail = IntConst(kN) - VarRef(outer);
  const auto body = [&](const Stmt& inside) {
    return Loop(outer, InScope(acc, std::make_shared<For>(kI, tail, LoopKind::kSerial, inside)));
  };
  ExpectSound(InScope(acc, Loop(kI, Put(acc, {kAt}, F32(0)))));
  ExpectSound(body(Put(acc, {IntConst(0)}, F32(0))));
  ExpectBroken(body(Put(acc, {kAt}, F32(0))),
               "accumulator acc is indexed by loop i, which has no constant extent");
}

TEST(VerifyTest, ParallelIterationsWriteApart) {
  const auto parallel = [](const Stmt& body) { return Loop(kI, body, LoopKind::kParallel); };
  const Var j = MakeVar("j", 4);
  ExpectSound(parallel(SetY(kAt)));
  ExpectBroken(parallel(SetY(IntConst(0))), "iterations of the parallel loop i write the same elements of y");
  const Var p = MakeVar("p", 2);
  const auto blocks = [&](int64_t step) {
    return Loop(p, Loop(j, SetY(VarRef(p) * step + VarRef(j))), LoopKind::kParallel);
  };
  ExpectSound(blocks(4));
  ExpectBroken(blocks(2), "iterations of the parallel loop p write overlapping elements of y");
  // One iteration alone, or a buffer of its own, is no conflict.
  ExpectSound(Loop(MakeVar("one", 1), SetY(IntConst(0)), LoopKind::kParallel));
  ExpectSound(parallel(When(MakeBinary(Op::kEq, kAt, IntConst(3)), SetY(IntConst(0)))));
  const Buffer z = MakeBuffer("z", DType::kF32, {1});
  ExpectSound(parallel(InScope(z, Put(z, {IntConst(0)}, F32(0)))));
  ExpectBroken(InScope(z, parallel(Put(z, {IntConst(0)}, F32(0)))), "write the same elements of z");
}

// y[0] += over r in 8 bound to the loop i.
std::shared_ptr<Block> SumBlock() {
  const Var r = MakeVar("r0", kN);
  auto block = MakeBlock("b", kY, {IterVar{r, true, kAt}}, {IntConst(0)}, Load(kX, {VarRef(r)}));
  block->reduce = ReduceOp::kSum;
  block->init = true;
  return block;
}

TEST(VerifyTest, ReductionsAreNotParallel) {
  ExpectSound(Loop(kI, SumBlock()));
  ExpectBroken(Loop(kI, SumBlock(), LoopKind::kParallel),
               "reduction variable r0 runs over the parallel loop i");
}

TEST(VerifyTest, ReductionsAreWellFormed) {
  auto block = SumBlock();
  block->reduce = ReduceOp::kNone;
  ExpectBroken(Loop(kI, block), "reduction variables or init without a reduction");
}

TEST(VerifyTest, TuplesHaveAnAccumulatorForEachPart) {
  const Buffer positions = MakeBuffer("p", DType::kI32, {kN}), wide = MakeBuffer("w", DType::kI64, {kN});
  const Buffer best = MakeBuffer("best", DType::kF32, {kN}), few = MakeBuffer("few", DType::kF32, {kN - 1});
  const auto arg = [&](const Buffer& at, const Buffer& values) {
    auto block = SumBlock();
    block->reduce = ArgExtremum(ReduceOp::kArgMax, DType::kF32);
    block->out = at;
    block->more = {{values, block->value}};
    block->value = IntConst(0, at->dtype);
    return block;
  };
  const auto within = [&](const Stmt& block) {
    return InScope(best, InScope(few, InScope(wide, InScope(positions, Loop(kI, block)))));
  };
  ExpectSound(within(arg(positions, best)));
  ExpectBroken(within(arg(wide, best)), "part 0 of argmax is i32; w is i64");
  ExpectBroken(within(arg(positions, few)), "few and p, parts of a tuple, have different shapes");
  auto block = arg(positions, best);
  block->more.clear();
  ExpectBroken(within(block), "a reduction of 2 parts into 1 accumulators");
  block = arg(positions, best);
  block->more[0].value = IntConst(0, DType::kI32);
  ExpectBroken(within(block), "i32 is accumulated in best of f32");
  block = arg(positions, best);
  block->reduce = ReduceOp::kArgMax;
  ExpectBroken(within(block), "argmax reduces tuples; expected its function");
}

TEST(VerifyTest, TilesLieInTheirBuffers) {
  const TileView at_end{kX, {IntConst(6)}, 1, 1}, ok{kY, {IntConst(0)}, 2, 1};
  ExpectSound(std::make_shared<Mma>("m", 2, 2, 1, ok, at_end, at_end));
  ExpectBroken(std::make_shared<Mma>("m", 2, 2, 2, ok, at_end, at_end),
               "the 2x2 view of x reaches past its end");
  ExpectBroken(std::make_shared<Mma>("m", 0, 2, 2, ok, at_end, at_end), "an empty tile");
  auto running = std::make_shared<Mma>("wgmma.f16", 2, 2, 1, ok, at_end, at_end);
  running->is_async = true;
  ExpectSound(running);
  running = std::make_shared<Mma>("mma.f16", 2, 2, 1, ok, at_end, at_end);
  running->is_async = true;
  ExpectBroken(running, "mma.f16 is not asynchronous; expected wgmma");
  // The second of two blocks of rows begins beyond the end.
  TileView blocks = at_end;
  blocks.block_rows = 1;
  blocks.block_stride = 2;
  ExpectSound(std::make_shared<Mma>("m", 1, 2, 1, ok, blocks, at_end));
  ExpectBroken(std::make_shared<Mma>("m", 2, 2, 1, ok, blocks, at_end),
               "the 2x1 view of x reaches past its end");
}

TEST(VerifyTest, CopiesStoreElements) {
  const auto copy = [](const Expr& value) {
    return std::make_shared<Copy>(Loop(kI, Put(kY, {kAt}, value)), CopyEngine::kThreads);
  };
  const Expr element = Load(kX, {kAt});
  ExpectSound(copy(element));
  ExpectSound(copy(MakeSelect(MakeBinary(Op::kLt, kAt, IntConst(4)), element, FloatConst(0, DType::kF32))));
  ExpectBroken(copy(element + element), "a copy computes its value");
  ExpectBroken(std::make_shared<Copy>(Nothing(), CopyEngine::kBulk), "a nest of loops around one store");
}

TEST(VerifyTest, VectorsMoveAllLanes) {
  const Buffer lanes = MakeBuffer("x.v", DType::kF32, {4});
  const auto vectors = [&](int64_t extent, int64_t count, int64_t first) {
    const Var v = MakeVar("v", extent);
    const Stmt loop = Loop(v, Put(kY, {VarRef(v)}, Load(lanes, {VarRef(v)})), LoopKind::kVector);
    return std::make_shared<Vectors>(std::vector<VectorMove>{{lanes, kX, {IntConst(first)}, count}}, loop,
                                     std::vector<VectorMove>{}, true);
  };
  ExpectSound(vectors(4, 4, 4));
  ExpectSound(vectors(4, 2, 2));
  ExpectBroken(vectors(4, 3, 0), "x.v for 4 lanes is moved 3 elements at a time");
  ExpectBroken(vectors(2, 2, 0), "x.v for 2 lanes is moved 2 elements at a time");
  ExpectBroken(vectors(4, 4, 6), "the 1x4 view of x reaches past its end");
  ExpectBroken(
      std::make_shared<Vectors>(std::vector<VectorMove>{}, Nothing(), std::vector<VectorMove>{}, true),
      "vectors around no vector loop");
}

TEST(VerifyTest, LoopsHoldWhatTheirLaneFormsPromise) {
  const Var u = MakeVar("u", 4), v = MakeVar("v", 4);
  const auto of_form = [](const Var& var, const Stmt& body, LoopKind kind, LaneForm form) {
    LoopMarks marks;
    marks.form = form;
    return As<For>(Loop(var, body, kind)).Marked(marks);
  };
  const Expr load = Load(kX, {VarRef(v)});
  auto store = std::make_shared<Store>(kY, std::vector<Expr>{VarRef(v)}, load);
  const Stmt lanes = Loop(v, store, LoopKind::kVector);
  ExpectSound(of_form(u, lanes, LoopKind::kUnroll, LaneForm::kInterleaves));
  ExpectBroken(of_form(u, lanes, LoopKind::kSerial, LaneForm::kInterleaves), "loop u is not unrolled");
  ExpectBroken(of_form(u, store, LoopKind::kUnroll, LaneForm::kInterleaves),
               "loop u is not around lanes of one store");
  ExpectBroken(of_form(u, lanes, LoopKind::kUnroll, LaneForm::kTurns), "loop u turns no loads of its store");
  ExpectBroken(of_form(u, lanes, LoopKind::kUnroll, LaneForm::kTurnsGroups),
               "loop u turns no groups that one store copies");
  ExpectBroken(of_form(v, store, LoopKind::kSerial, LaneForm::kOneByOne), "loop v is no vector loop");
  auto turning = std::make_shared<Store>(*store);
  turning->turned = {load};
  ExpectSound(of_form(u, Loop(v, turning, LoopKind::kVector), LoopKind::kUnroll, LaneForm::kTurns));
  auto other = std::make_shared<Store>(*store);
  other->turned = {Load(kX, {VarRef(u)})};
  ExpectBroken(of_form(u, Loop(v, other, LoopKind::kVector), LoopKind::kUnroll, LaneForm::kTurns),
               "loop u turns no loads of its store");
}

TEST(VerifyTest, StoresPastTheCachesAreAligned) {
  const auto bypass = [](const std::vector<Buffer>& outputs, int64_t first, int64_t lanes, LoopKind kind) {
    const Var v = MakeVar("v", 4);
    auto store =
        std::make_shared<Store>(kY, std::vector<Expr>{VarRef(v) + first}, FloatConst(0, DType::kF32));
    store->bypass_lanes = lanes;
    return std::make_shared<Bypass>(outputs, Loop(v, store, kind));
  };
  ExpectSound(bypass({kY}, 4, 4, LoopKind::kVector));
  ExpectSound(bypass({kY}, 2, 2, LoopKind::kVector));
  ExpectBroken(bypass({kY}, 2, 4, LoopKind::kVector),
               "4 lanes are stored past the caches from positions that are multiples of 2");
  ExpectBroken(bypass({kY}, 4, 4, LoopKind::kSerial), "no lanes are stored past the caches");
  ExpectBroken(bypass({kX}, 4, 4, LoopKind::kVector), "y is stored past the caches outside a bypass of it");
  ExpectBroken(bypass({}, 4, 4, LoopKind::kVector), "a bypass of no outputs");
  ExpectBroken(std::make_shared<Bypass>(std::vector<Buffer>{kY}, bypass({kY}, 4, 4, LoopKind::kVector)),
               "a bypass inside a bypass");
}

TEST(VerifyTest, SumsInTilesStayInTheirRegion) {
  const Buffer sums = MakeBuffer("acc", DType::kF32, {16, 16}, Scope::kAccumulator),
               a = MakeBuffer("a", DType::kBF16, {16, 32});
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  const auto move = [&](TileMove::Kind kind) {
    return std::make_shared<TileMove>(kind, TileView{sums, origin, 16, 1}, Nothing());
  };
  const auto product = [&](const char* instruction) {
    return std::make_shared<Mma>(instruction, 16, 16, 32, TileView{sums, origin, 16, 1},
                                 TileView{a, origin, 32, 2}, TileView{a, origin, 32, 2}, WarpGrid{}, 2);
  };
  const auto in_scope = [&](const Stmt& body) { return InAllocs({sums, a}, body); };
  const auto region = [&](const Stmt& products, const Stmt& end, int64_t bytes) {
    return std::make_shared<TileRegion>(move(TileMove::kZero), products, end, bytes);
  };
  const Stmt end = move(TileMove::kStore);
  ExpectSound(in_scope(region(product("amx.bf16"), end, 64)));
  ExpectBroken(in_scope(region(product("amx.bf16"), end, 32)), "a step of 64 bytes in tiles of 32");
  ExpectBroken(in_scope(region(product("dot.bf16"), end, 64)), "dot.bf16 has no sums in tiles");
  ExpectBroken(in_scope(region(product("amx.bf16"), product("amx.bf16"), 64)), "sums in tiles end with");
  ExpectBroken(in_scope(end), "sums in tiles are moved outside their region");
}

// A loop's variable takes all values of its range; one that is defined may not, so only execution decides
// what is in range.
TEST(VerifyTest, VariablesAreDefinedWithinTheirRanges) {
  const Var from = MakeVar("from", 8), count = MakeVar("count", 8), narrow = MakeVar("narrow", 4);
  const auto let = [](const Var& var, const Expr& value, const Stmt& body) {
    return std::make_shared<Let>(var, value, body);
  };
  const Expr rest = IntConst(7) - VarRef(from), difference = VarRef(count) - VarRef(from);
  ExpectSound(Loop(kI, let(from, kAt, let(count, rest, Nothing()))));
  ExpectSound(Loop(kI, let(from, kAt, let(count, rest, let(narrow, difference, Nothing())))));
  ExpectBroken(Loop(kI, let(narrow, kAt, Nothing())), "the value of narrow is outside its range of 4");
  ExpectBroken(Loop(kI, let(from, kAt - 1, Nothing())), "the value of from is outside its range of 8");
}

TEST(VerifyTest, EachWarpgroupThatMultipliesArrives) {
  const auto role = [](const char* instruction, int arrivals) {
    const TileView view{kX, {IntConst(0)}, 1, 1}, sums{kY, {IntConst(0)}, 1, 1};
    const Stmt product = std::make_shared<Mma>(instruction, 1, 1, 1, sums, view, view, WarpGrid{2, 1});
    const Stmt arrive = std::make_shared<Arrive>(IntConst(0), nullptr, arrivals);
    return std::make_shared<Roles>(std::vector<Roles::Role>{{"a", MakeSeq({product, arrive})}},
                                   std::vector<int>{2});
  };
  ExpectSound(role("wgmma.f16", 2));
  ExpectBroken(role("wgmma.f16", 1), "1 arrivals in a role that multiplies by 2 warpgroups; expected 2");
  ExpectBroken(role("wgmma.f16", 4), "4 arrivals in a role that multiplies by 2 warpgroups; expected 2");
  ExpectSound(role("mma.f16", 1));
  ExpectBroken(role("mma.f16", 2), "2 arrivals in a role that multiplies by 0 warpgroups; expected 1");
}

TEST(VerifyTest, ThreadsThatReadATileGatherBeforeItIsReleased) {
  const Stmt read = Loop(kI, Put(kY, {kAt}, Load(kX, {kAt})));
  const auto role = [&](const Buffer& released, bool gathers) {
    const Stmt arrive =
        std::make_shared<Arrive>(IntConst(0), nullptr, 1, 0, std::vector<Buffer>{released}, gathers);
    return std::make_shared<Roles>(std::vector<Roles::Role>{{"a", MakeSeq({read, arrive})}},
                                   std::vector<int>{1});
  };
  ExpectSound(role(kX, true));
  ExpectSound(role(kY, false));
  ExpectBroken(role(kX, false),
               "an arrival releases x, which threads of its role read, without gathering them");
}

TEST(VerifyTest, PipelinesAreWellFormed) {
  const auto roles = [](const Stmt& body, std::vector<int> counts) {
    return std::make_shared<Roles>(std::vector<Roles::Role>{{"a", body}}, std::move(counts));
  };
  const Stmt arrive = std::make_shared<Arrive>(Mod(kAt, 2)), wait = std::make_shared<Wait>(Mod(kAt, 2), kAt);
  ExpectSound(roles(Loop(kI, MakeSeq({arrive, wait})), {1, 1}));
  ExpectBroken(roles(Loop(kI, arrive), {1}), "barrier i % 2 is not one of 1");
  ExpectBroken(roles(std::make_shared<Wait>(IntConst(2), IntConst(0)), {1, 1}), "barrier 2 is not one of 2");
  ExpectBroken(Loop(kI, wait), "a barrier outside roles");
  ExpectBroken(roles(Nothing(), {0}), "a barrier of 0 arrivals");
  ExpectBroken(roles(roles(Nothing(), {}), {}), "roles inside roles");
  ExpectBroken(roles(Loop(kI, Nothing(), LoopKind::kParallel), {}), "parallel loop i inside roles");
  ExpectBroken(std::make_shared<Roles>(std::vector<Roles::Role>{{"a", Nothing()}, {"a", Nothing()}},
                                       std::vector<int>{}),
               "two roles are named a");
  ExpectBroken(std::make_shared<WaitGroup>(-1), "a negative number of pending groups");
  ExpectBroken(std::make_shared<WaitProducts>(-1), "a negative number of pending groups of products");
  ExpectBroken(roles(std::make_shared<Arrive>(IntConst(0), nullptr, 1, -4), {1}),
               "an arrival that expects -4 bytes");
  const Stmt body = Loop(kI, Put(kY, {kAt}, Load(kX, {kAt})));
  ExpectSound(roles(std::make_shared<Copy>(body, CopyEngine::kBulk, IntConst(0)), {1}));
  ExpectBroken(roles(std::make_shared<Copy>(body, CopyEngine::kBulk, IntConst(1)), {1}),
               "barrier 1 is not one of 1");
}

TEST(VerifyTest, ALaunchIsWhatItsLoopsSay) {
  const Var j = MakeVar("j", 40);
  const Stmt code = Loop(kI, Loop(j, Nothing(), LoopKind::kThread), LoopKind::kGrid);
  const auto launch = [](const LaunchShape& shape, const Stmt& body) {
    return std::make_shared<Launch>(shape, body);
  };
  ExpectSound(launch({.grid = 8, .threads = 64}, code));
  ExpectSound(
      MakeSeq({launch({.grid = 8, .threads = 64, .cluster = 4}, code), launch({.threads = 32}, Nothing())}));
  ExpectBroken(launch({.grid = 9, .threads = 64}, code), "the grid loops have 8 blocks; in \"launch grid 9");
  ExpectBroken(launch({.grid = 8, .threads = 32}, code), "40 threads; expected at most 32");
  ExpectBroken(launch({.grid = 8, .threads = 48}, code), "whole warps");
  ExpectBroken(launch({.grid = 8, .threads = 64, .cluster = 3}, code), "clusters of 3 blocks");
  ExpectBroken(Loop(kI, launch({.threads = 32}, Nothing())), "a launch inside other code");
  ExpectBroken(launch({.threads = 32}, launch({.threads = 32}, Nothing())), "a launch inside other code");
}

TEST(VerifyTest, BuffersLieInTheSharedMemoryOfTheirLaunch) {
  const Buffer tile = MakeBuffer("tile", DType::kF32, {8}, Scope::kShared),
               z = MakeBuffer("z", DType::kF32, {8});
  const auto launch = [](const Buffer& buffer, int64_t offset) {
    return std::make_shared<Launch>(LaunchShape{.threads = 32, .shared_bytes = 64},
                                    std::make_shared<Alloc>(buffer, Nothing(), offset));
  };
  ExpectSound(launch(tile, 32));
  ExpectBroken(launch(tile, 48), "tile in bytes 48..80 of shared memory; expected multiples of 16 up to 64");
  ExpectBroken(launch(tile, 8), "tile in bytes 8..40 of shared memory");
  ExpectBroken(launch(z, 0), "an offset of z, which is not in the shared memory of a launch");
  ExpectBroken(std::make_shared<Alloc>(tile, Nothing(), 0), "an offset of tile");
}

}  // namespace
}  // namespace mycc
