// The interpreter on small functions: results, and the errors that it must find.
#include "codegen/ir/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "codegen/ir/pipeline_stmts.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr int64_t kN = 8;
const Buffer kX = MakeBuffer("x", DType::kF32, {kN});
const Buffer kY = MakeBuffer("y", DType::kF32, {kN});

// x[i] = i
NDArray Iota(DType dtype, std::vector<int64_t> shape) {
  NDArray array = NDArray::Zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, Scalar{static_cast<double>(i), i});
  return array;
}

std::vector<double> Floats(const NDArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.num_elements(); ++i) values.push_back(array.Get(i).f);
  return values;
}

// Runs a body from x to y and returns y, or the error.
absl::StatusOr<std::vector<double>> RunOn(const Stmt& body, uint64_t seed = 0) {
  const auto outputs = RunFunction(MakeFunction({kX}, {kY}, body), {Iota(DType::kF32, {kN})}, seed);
  if (!outputs.ok()) return outputs.status();
  return Floats((*outputs)[0]);
}

void ExpectFailure(const Stmt& body, const std::string& message, uint64_t seed = 0) {
  const auto result = RunOn(body, seed);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
}

TEST(InterpreterTest, ReadsOfUnwrittenMemoryFail) {
  const Var i = MakeVar("i", kN);
  const Buffer z = MakeBuffer("z", DType::kF32, {kN});
  ExpectFailure(InScope(z, Loop(i, Put(kY, {VarRef(i)}, Load(z, {VarRef(i)})))),
                "z[0] is read before it is written; in \"y[i] = z[i]\" at i=0");
}

TEST(InterpreterTest, AnAllocInALoopIsPoisonedAnew) {
  const Var i = MakeVar("i", kN);
  const Buffer z = MakeBuffer("z", DType::kF32, {1});
  const auto body = [&](const Stmt& store) {
    return Loop(i, InScope(z, MakeSeq({store, Put(kY, {VarRef(i)}, Load(z, {IntConst(0)}))})));
  };
  const Stmt store = Put(z, {IntConst(0)}, F32(2));
  EXPECT_TRUE(RunOn(body(store)).ok());
  const Stmt first_only = std::make_shared<If>(MakeBinary(Op::kLt, VarRef(i), IntConst(1)), store);
  ExpectFailure(body(first_only), "z[0] is read before it is written; in \"y[i] = z[0]\" at i=1");
}

TEST(InterpreterTest, OutputsMustBeWrittenWhole) {
  const Var i = MakeVar("i", kN - 1);
  ExpectFailure(Loop(i, Put(kY, {VarRef(i)}, F32(1))), "output y: element 7 of 8 is never written");
}

TEST(InterpreterTest, IndicesAreChecked) {
  const Var i = MakeVar("i", kN);
  ExpectFailure(Loop(i, Put(kY, {VarRef(i)}, Load(kX, {VarRef(i) + 1}))),
                "x[8] is out of range: the shape is [8]; in \"y[i] = x[i+1]\" at i=7");
  ExpectFailure(Loop(i, Put(kY, {VarRef(i) - 1}, F32(0))), "y[-1] is out of range: the shape is [8]");
}

TEST(InterpreterTest, TheArmNotTakenIsNotRead) {
  const Var i = MakeVar("i", kN);
  const Expr inside = MakeBinary(Op::kLt, VarRef(i), IntConst(kN - 1));
  const auto y = RunOn(Loop(i, Put(kY, {VarRef(i)}, MakeSelect(inside, Load(kX, {VarRef(i) + 1}), F32(-1)))));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(*y, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, -1));
}

TEST(InterpreterTest, LoopsOutgrowNoVariable) {
  const Var i = MakeVar("i", 4);
  ExpectFailure(std::make_shared<For>(i, IntConst(5), LoopKind::kSerial, Put(kY, {VarRef(i)}, F32(0))),
                "loop i of 5 iterations: its variable's range is 4");
}

TEST(InterpreterTest, InputsAreChecked) {
  const Function function = MakeFunction({kX}, {kY}, Loop(MakeVar("i", kN), std::make_shared<Fence>()));
  EXPECT_EQ(RunFunction(function, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(RunFunction(function, {Iota(DType::kF32, {4})}).status().message()),
              HasSubstr("input x is f32[4], expected f32[8]"));
  EXPECT_FALSE(RunFunction(function, {Iota(DType::kF64, {kN})}).ok());
}

TEST(InterpreterTest, MalformedFunctionsAreRefused) {
  const Var i = MakeVar("i", kN);
  ExpectFailure(Put(kY, {VarRef(i)}, F32(0)), "variable i is used outside its loop");
  ExpectFailure(Put(MakeBuffer("z", DType::kF32, {1}), {IntConst(0)}, F32(0)),
                "buffer z is used outside its scope");
  ExpectFailure(Put(kX, {IntConst(0)}, F32(0)), "input x is written");
  ExpectFailure(std::make_shared<Arrive>(IntConst(0)), "arrive of a barrier outside roles");
}

// Blocks.

TEST(InterpreterTest, InstancesOutsideTheDomainAreSkipped) {
  const Var outer = MakeVar("y.a0.0", 3), inner = MakeVar("y.a0.1", 3), a = MakeVar("a0", kN);
  const Stmt block = MakeBlock("y", kY, {IterVar{a, false, VarRef(outer) * 3 + VarRef(inner)}}, {VarRef(a)},
                               Load(kX, {VarRef(a)}));
  const auto y = RunOn(Loop(outer, Loop(inner, block)));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(*y, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// y[a] = op over r of x[r], the reduction loop outside and split by four, so that r runs 0, 2, 4, 6, 1, 3,
// ...
Stmt Reduction(ReduceOp op, bool init, LoopKind kind = LoopKind::kSerial) {
  const Var i = MakeVar("y.a0", kN), r0 = MakeVar("y.r0.0", 4), r1 = MakeVar("y.r0.1", 2);
  const Var a = MakeVar("a0", kN), r = MakeVar("r0", kN);
  auto block =
      MakeBlock("y", kY, {IterVar{a, false, VarRef(i)}, IterVar{r, true, VarRef(r0) * 2 + VarRef(r1)}},
                {VarRef(a)}, Load(kX, {VarRef(r)}));
  block->reduce = op;
  block->init = init;
  return Loop(r1, Loop(r0, Loop(i, block), kind));
}

TEST(InterpreterTest, ReductionsStartFromTheIdentityInAnyLoopOrder) {
  for (const auto& [op, want] : {std::pair{ReduceOp::kSum, 28.0},
                                 {ReduceOp::kProd, 0.0},
                                 {ReduceOp::kMax, 7.0},
                                 {ReduceOp::kMin, 0.0}}) {
    const auto y = RunOn(Reduction(op, true));
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(*y, std::vector<double>(kN, want)) << ReduceOpName(op);
  }
}

TEST(InterpreterTest, ReductionsWithoutInitNeedAFilledAccumulator) {
  ExpectFailure(Reduction(ReduceOp::kSum, false),
                "y[0] is read before it is written; in block y at y.r0.1=0, y.r0.0=0, y.a0=0");
  const Var i = MakeVar("i", kN);
  const auto y = RunOn(MakeSeq({Loop(i, Put(kY, {VarRef(i)}, F32(100))), Reduction(ReduceOp::kSum, false)}));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(*y, std::vector<double>(kN, 128));
}

// y = argmax or argmin over r of `values`, visiting r in the order 0, 2, 4, 6, 1, 3, 5, 7.
int64_t Best(ReduceOp op, const std::vector<double>& values) {
  const Buffer y = MakeBuffer("y", DType::kI32, {1}), best = MakeBuffer("best", DType::kF32, {1});
  const Var outer = MakeVar("r0.0", 4), inner = MakeVar("r0.1", 2), r = MakeVar("r0", kN);
  auto block = MakeBlock("y", y, {IterVar{r, true, VarRef(outer) * 2 + VarRef(inner)}}, {IntConst(0)},
                         MakeCast(DType::kI32, VarRef(r)));
  block->reduce = ArgExtremum(op, DType::kF32);
  block->init = true;
  block->more = {{best, Load(kX, {VarRef(r)})}};
  NDArray x = NDArray::Zeros(DType::kF32, {kN});
  for (int64_t i = 0; i < kN; ++i) x.Set(i, Scalar{values[i], 0});
  const auto outputs =
      RunFunction(MakeFunction({kX}, {y}, InScope(best, Loop(inner, Loop(outer, block)))), {x});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0].Get(0).i : -1;
}

TEST(InterpreterTest, ArgReductionsTakeTheLowestPositionInAnyLoopOrder) {
  EXPECT_EQ(Best(ReduceOp::kArgMax, {0, 5, 5, 1, 5, 1, 1, 1}), 1);
  EXPECT_EQ(Best(ReduceOp::kArgMin, {9, 9, 2, 2, 2, 3, 3, 3}), 2);
  EXPECT_EQ(Best(ReduceOp::kArgMax, std::vector<double>(kN, -1)), 0);
}

TEST(InterpreterTest, TheFirstNaNIsBest) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Best(ReduceOp::kArgMax, {0, 1, kInf, kNaN, kNaN, 0, 0, 0}), 3);
  EXPECT_EQ(Best(ReduceOp::kArgMin, {0, 1, -kInf, kNaN, kNaN, 0, 0, 0}), 3);
  EXPECT_EQ(Best(ReduceOp::kArgMax, {kNaN, kInf, 0, 0, 0, 0, 0, 0}), 0);
}

TEST(InterpreterTest, NaNPropagatesThroughMaxAndMin) {
  NDArray x = Iota(DType::kF32, {kN});
  x.Set(3, Scalar{std::numeric_limits<double>::quiet_NaN(), 0});
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    const auto outputs = RunFunction(MakeFunction({kX}, {kY}, Reduction(op, true)), {x});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_TRUE(std::isnan((*outputs)[0].Get(0).f));
  }
}

// Parallel loops.

TEST(InterpreterTest, ParallelIterationsRunInAnOrderOfTheSeed) {
  const Var i = MakeVar("i", kN);
  const Stmt body = Loop(i, Put(kY, {VarRef(i)}, Load(kX, {VarRef(i)})), LoopKind::kParallel);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto y = RunOn(body, seed);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT(*y, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  // The first iteration that goes wrong shows the order.
  std::set<std::string> errors;
  const Stmt wrong = Loop(i, Put(kY, {VarRef(i)}, Load(kX, {VarRef(i) + kN})), LoopKind::kParallel);
  for (uint64_t seed = 0; seed < 20; ++seed)
    errors.insert(std::string(RunOn(wrong, seed).status().message()));
  EXPECT_GT(errors.size(), 3u);
  EXPECT_EQ(RunOn(wrong, 5).status(), RunOn(wrong, 5).status());
}

TEST(InterpreterTest, ParallelIterationsMustNotMeet) {
  const Var i = MakeVar("i", kN);
  const Buffer z = MakeBuffer("z", DType::kF32, {kN});
  const auto parallel = [&](const Stmt& stmt) { return InScope(z, Loop(i, stmt, LoopKind::kParallel)); };
  for (uint64_t seed = 0; seed < 5; ++seed) {
    ExpectFailure(parallel(Put(z, {FloorDiv(VarRef(i), 2)}, F32(0))),
                  "was written by another iteration of the parallel loop", seed);
    const Stmt fill = Put(z, {VarRef(i)}, F32(1));
    // Every iteration reads element 0, which iteration 0 writes: before or after, it is a race.
    const Stmt read_first = Put(kY, {VarRef(i)}, Load(z, {IntConst(0)}));
    ExpectFailure(InScope(z, MakeSeq({Loop(MakeVar("j", 1), Put(z, {IntConst(0)}, F32(0))),
                                      Loop(i, MakeSeq({read_first, fill}), LoopKind::kParallel)})),
                  "iteration of the parallel loop", seed);
  }
}

TEST(InterpreterTest, ParallelIterationsHaveTheirOwnAllocs) {
  const Var i = MakeVar("i", kN);
  const Buffer z = MakeBuffer("z", DType::kF32, {1});
  const Stmt use =
      MakeSeq({Put(z, {IntConst(0)}, Load(kX, {VarRef(i)})), Put(kY, {VarRef(i)}, Load(z, {IntConst(0)}))});
  EXPECT_TRUE(RunOn(Loop(i, InScope(z, use), LoopKind::kParallel)).ok());
  ExpectFailure(InScope(z, Loop(i, use, LoopKind::kParallel)), "z[0] was");
}

// Iterations of a parallel loop right inside another one are told apart as those of the outer loop are.
TEST(InterpreterTest, IterationsOfNestedParallelLoopsMustNotMeet) {
  const Var i = MakeVar("i", 2), j = MakeVar("j", kN / 2);
  const Buffer z = MakeBuffer("z", DType::kF32, {2});
  const Expr at = VarRef(i) * (kN / 2) + VarRef(j);
  for (const LoopKind kind : {LoopKind::kParallel, LoopKind::kGrid}) {
    const auto nest = [&](const Stmt& body) { return Loop(i, Loop(j, body, kind), kind); };
    EXPECT_TRUE(RunOn(nest(Put(kY, {at}, Load(kX, {at})))).ok());
    const Stmt of_the_outer = Put(z, {VarRef(i)}, F32(0));
    for (uint64_t seed = 0; seed < 5; ++seed) {
      ExpectFailure(InScope(z, nest(of_the_outer)), "was written by another iteration of the parallel loop",
                    seed);
      ExpectFailure(Loop(i, InScope(z, Loop(j, of_the_outer, kind)), kind),
                    "was written by another iteration of the parallel loop", seed);
    }
  }
}

TEST(InterpreterTest, OneParallelLoopAfterAnotherMayReadWhatItWrote) {
  const Var i = MakeVar("i", kN), j = MakeVar("j", kN);
  const Buffer z = MakeBuffer("z", DType::kF32, {kN});
  const Stmt first = Loop(i, Put(z, {VarRef(i)}, Load(kX, {VarRef(i)})), LoopKind::kParallel);
  const Stmt second =
      Loop(j, Put(kY, {VarRef(j)}, Load(z, {IntConst(kN - 1) - VarRef(j)})), LoopKind::kParallel);
  const auto y = RunOn(InScope(z, MakeSeq({first, second})));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(*y, testing::ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
}

// Tile statements.

TEST(InterpreterTest, MmaComputesInTheAccumulatorsType) {
  const Buffer a = MakeBuffer("a", DType::kI8, {2, 4}), b = MakeBuffer("b", DType::kI8, {4, 3}),
               acc = MakeBuffer("acc", DType::kI32, {2, 3});
  const auto whole = [](const Buffer& buffer) {
    return TileView{buffer, {IntConst(0), IntConst(0)}, buffer->stride(0), 1};
  };
  const Var i = MakeVar("i", 2), j = MakeVar("j", 3);
  const Stmt zero = Loop(i, Loop(j, Put(acc, {VarRef(i), VarRef(j)}, IntConst(0, DType::kI32))));
  const Stmt mma = std::make_shared<Mma>("test", 2, 3, 4, whole(acc), whole(a), whole(b));
  NDArray x = NDArray::Zeros(DType::kI8, {2, 4}), w = NDArray::Zeros(DType::kI8, {4, 3});
  for (int64_t k = 0; k < 8; ++k) x.Set(k, Scalar{0, 100 + k});
  for (int64_t k = 0; k < 12; ++k) w.Set(k, Scalar{0, -k});
  const auto outputs = RunFunction(MakeFunction({a, b}, {acc}, MakeSeq({zero, mma})), {x, w});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (int64_t p = 0; p < 2; ++p) {
    for (int64_t q = 0; q < 3; ++q) {
      int64_t want = 0;
      for (int64_t k = 0; k < 4; ++k) want += (100 + p * 4 + k) * -(k * 3 + q);
      EXPECT_EQ((*outputs)[0].Get(p * 3 + q).i, want);
    }
  }
  EXPECT_THAT(std::string(RunFunction(MakeFunction({a, b}, {acc}, mma), {x, w}).status().message()),
              HasSubstr("acc[0,0] is read before"));
  // The first product of a sum reads nothing of it.
  auto first = std::make_shared<Mma>(As<Mma>(mma));
  first->first = true;
  const auto begun = RunFunction(MakeFunction({a, b}, {acc}, first), {x, w});
  ASSERT_TRUE(begun.ok()) << begun.status();
  for (int64_t e = 0; e < 6; ++e) EXPECT_EQ((*begun)[0].Get(e).i, (*outputs)[0].Get(e).i);
}

TEST(InterpreterTest, CopiesStoreElementsOrZero) {
  const Var i = MakeVar("i", 8);
  const auto copy = [&](const Expr& value) {
    const Stmt body = std::make_shared<For>(i, IntConst(8), LoopKind::kSerial,
                                            std::make_shared<Store>(kY, std::vector<Expr>{VarRef(i)}, value));
    return MakeSeq({std::make_shared<Copy>(body, CopyEngine::kThreads), std::make_shared<CommitGroup>(),
                    std::make_shared<WaitGroup>(0)});
  };
  const Expr inside = MakeBinary(Op::kLt, VarRef(i), IntConst(6));
  const auto y = RunOn(copy(MakeSelect(inside, Load(kX, {VarRef(i) + 2}), FloatConst(0, DType::kF32))));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(*y, testing::ElementsAre(2, 3, 4, 5, 6, 7, 0, 0));
  ExpectFailure(copy(Load(kX, {VarRef(i) + 2})), "x[8] is out of range");
  ExpectFailure(copy(Load(kX, {VarRef(i)}) + FloatConst(1, DType::kF32)), "a copy computes its value");
}

}  // namespace
}  // namespace mycc
