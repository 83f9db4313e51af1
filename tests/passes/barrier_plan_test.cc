// The places of barriers: launches by hand, in which a barrier stands exactly where the threads touch what
// others have touched; and schedules in which each planned barrier is needed.
#include "absl/strings/str_cat.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lower.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// A buffer in shared memory from byte `offset` on.
Stmt At(const Buffer& buffer, int64_t offset, Stmt body) {
  return std::make_shared<Alloc>(buffer, std::move(body), offset);
}

// Statements of a launch by name. Each kind of statement is made anew, since a plan knows them by pointer.
struct HandMade {
  const Buffer a = MakeBuffer("a", DType::kF32, {32}, Scope::kShared);
  const Buffer b = MakeBuffer("b", DType::kF32, {32}, Scope::kShared);
  const Buffer own = MakeBuffer("own", DType::kF32, {1}, Scope::kLocal);
  const Buffer in = MakeBuffer("in", DType::kF32, {32}), out = MakeBuffer("out", DType::kF32, {32});

  // Thread t: to[t] = from[31 - t].
  Stmt Threads(const Buffer& to, const Buffer& from) const {
    const Var t = MakeVar("t", 32);
    return Loop(t, Put(to, {VarRef(t)}, Load(from, {IntConst(31) - VarRef(t)})), LoopKind::kThread);
  }
  // to[0] = from[0], outside of thread loops.
  Stmt Alone(const Buffer& to, const Buffer& from) const {
    return Put(to, {IntConst(0)}, Load(from, {IntConst(0)}));
  }
  Stmt Around(Stmt body, int64_t offset_of_b = 128) const {
    return At(a, 0, At(b, offset_of_b, InScope(own, std::move(body))));
  }

  // B for each barrier and a name for each statement, in order.
  std::string Plan(const std::vector<Stmt>& stmts, int64_t offset_of_b = 128) const {
    const auto before = PlanBarriers(Around(MakeSeq(stmts), offset_of_b));
    std::string text;
    for (const Stmt& stmt : stmts) absl::StrAppend(&text, before.count(stmt.get()) ? "|" : "", "s");
    return text;
  }
};

TEST(BarrierPlanTest, ReadersWaitForWriters) {
  const HandMade k;
  EXPECT_EQ(k.Plan({k.Threads(k.a, k.in), k.Threads(k.out, k.a)}), "s|s");
  // Another buffer; a tensor that nobody writes.
  EXPECT_EQ(k.Plan({k.Threads(k.a, k.in), k.Threads(k.b, k.in)}), "ss");
  EXPECT_EQ(k.Plan({k.Threads(k.out, k.in), k.Threads(k.a, k.in)}), "ss");
  // In global memory as in shared.
  EXPECT_EQ(k.Plan({k.Threads(k.out, k.in), k.Threads(k.a, k.out)}), "s|s");
}

TEST(BarrierPlanTest, WritersWaitForReadersAndForOtherWriters) {
  const HandMade k;
  EXPECT_EQ(k.Plan({k.Threads(k.out, k.a), k.Threads(k.a, k.in)}), "s|s");
  EXPECT_EQ(k.Plan({k.Threads(k.a, k.in), k.Threads(k.a, k.out)}), "s|s");
}

TEST(BarrierPlanTest, OneBarrierServesAllThatCameBefore) {
  const HandMade k;
  EXPECT_EQ(
      k.Plan({k.Threads(k.a, k.in), k.Threads(k.b, k.in), k.Threads(k.out, k.a), k.Threads(k.own, k.b)}),
      "ss|ss");
}

// Buffers that share bytes, whole or in part, are one.
TEST(BarrierPlanTest, BytesThatAreSharedCountAsOne) {
  const HandMade k;
  const auto plan = [&](int64_t offset_of_b) {
    return k.Plan({k.Threads(k.a, k.in), k.Threads(k.b, k.in)}, offset_of_b);
  };
  EXPECT_EQ(plan(128), "ss");
  EXPECT_EQ(plan(0), "s|s");
  EXPECT_EQ(plan(124), "s|s");
}

TEST(BarrierPlanTest, RowsAreAsLongAsTheirPadding) {
  BufferNode padded{"padded",
                    DType::kF32,
                    {4, 8},
                    Scope::kShared,
                    SharedMemoryLayout({4, 8}, /*element_bytes=*/4, /*row_pad=*/1, /*swizzle_bytes=*/0)};
  const Buffer rows = std::make_shared<BufferNode>(padded);
  const Buffer behind = MakeBuffer("behind", DType::kF32, {32}, Scope::kShared);
  const Var t = MakeVar("t", 32), u = MakeVar("u", 32);
  const Stmt first =
      Loop(t, Put(rows, {FloorDiv(VarRef(t), 8), Mod(VarRef(t), 8)}, F32(1)), LoopKind::kThread);
  const Stmt second = Loop(u, Put(behind, {VarRef(u)}, F32(1)), LoopKind::kThread);
  const auto plan = [&](int64_t offset) {
    return PlanBarriers(At(rows, 0, At(behind, offset, MakeSeq({first, second}))));
  };
  EXPECT_EQ(plan(128).count(second.get()), 1u);
  EXPECT_EQ(plan(144).size(), 0u);
}

// Registers are a thread's own, and what one thread does alone comes in its order.
TEST(BarrierPlanTest, AThreadDoesNotWaitForItself) {
  const HandMade k;
  EXPECT_EQ(k.Plan({k.Alone(k.own, k.in), k.Alone(k.own, k.own)}), "ss");
  EXPECT_EQ(k.Plan({k.Alone(k.a, k.in), k.Alone(k.b, k.a)}), "ss");
  EXPECT_EQ(k.Plan({k.Alone(k.a, k.in), k.Threads(k.out, k.a)}), "s|s");
  // Every thread reads for its own register.
  EXPECT_EQ(k.Plan({k.Alone(k.a, k.in), k.Alone(k.own, k.a)}), "s|s");
}

TEST(BarrierPlanTest, AnIterationWaitsForTheOneBefore) {
  const HandMade k;
  const Stmt fill = k.Threads(k.a, k.in), use = k.Threads(k.out, k.a);
  const auto plan = [&](const std::vector<Stmt>& body) {
    return PlanBarriers(k.Around(Loop(MakeVar("turn", 3), MakeSeq(body))));
  };
  const auto ring = plan({fill, use});
  EXPECT_EQ(ring.size(), 2u);
  EXPECT_EQ(ring.count(fill.get()), 1u);
  EXPECT_EQ(ring.count(use.get()), 1u);
  // The same element again has the same value.
  EXPECT_EQ(plan({fill}).size(), 0u);
}

TEST(BarrierPlanTest, WhatOneArmTouchesIsWaitedForAfterBoth) {
  const HandMade k;
  const Stmt use = k.Threads(k.out, k.a);
  const auto plan = [&](const Stmt& then, const Stmt& otherwise) {
    const Expr condition = MakeBinary(Op::kLt, VarRef(MakeVar("n", 2)), IntConst(1));
    const Stmt both = std::make_shared<If>(condition, then, otherwise);
    return PlanBarriers(k.Around(MakeSeq({both, use}))).count(use.get());
  };
  EXPECT_EQ(plan(k.Threads(k.b, k.in), k.Threads(k.a, k.in)), 1u);
  EXPECT_EQ(plan(k.Threads(k.a, k.in), nullptr), 1u);
  EXPECT_EQ(plan(k.Threads(k.b, k.in), k.Threads(k.b, k.in)), 0u);
}

// These statements are barriers themselves.
TEST(BarrierPlanTest, WaitingForAGroupOrABlockIsABarrierItself) {
  const HandMade k;
  const Buffer flags = MakeBuffer("flags", DType::kI32, {2});
  const Stmt fill = k.Threads(k.a, k.in), use = k.Threads(k.out, k.a);
  EXPECT_EQ(k.Plan({fill, std::make_shared<WaitGroup>(0), use}), "sss");
  EXPECT_EQ(k.Plan({fill, std::make_shared<Await>(flags, IntConst(0)), use}), "sss");
  EXPECT_EQ(k.Plan({fill, std::make_shared<Signal>(flags, IntConst(0)), use}), "sss");
  EXPECT_EQ(k.Plan({fill, std::make_shared<CommitGroup>(), use}), "ss|s");
}

// A product reads its operands until its warpgroup has waited for it: a barrier before that is none for them.
TEST(BarrierPlanTest, AProductReadsUntilItIsWaitedFor) {
  const HandMade k;
  const auto plan = [&](bool is_async, const std::vector<Stmt>& between) {
    const TileView view{k.a, {IntConst(0)}, 1, 1};
    auto product =
        std::make_shared<Mma>("wgmma.f16", 1, 1, 1, TileView{k.own, {IntConst(0)}, 1, 1}, view, view);
    product->is_async = is_async;
    std::vector<Stmt> stmts = {product};
    stmts.insert(stmts.end(), between.begin(), between.end());
    stmts.push_back(k.Threads(k.a, k.in));
    return k.Plan(stmts);
  };
  const Stmt barrier = std::make_shared<Barrier>(), wait = std::make_shared<WaitProducts>(0);
  EXPECT_EQ(plan(false, {}), "s|s");
  EXPECT_EQ(plan(false, {barrier}), "sss");
  EXPECT_EQ(plan(true, {wait, barrier}), "ssss");
  EXPECT_EQ(plan(true, {barrier, wait}), "sss|s");
  EXPECT_EQ(plan(true, {wait, barrier, std::make_shared<WaitProducts>(0)}), "sssss");
  EXPECT_EQ(plan(true, {barrier, std::make_shared<WaitProducts>(1), barrier, wait}), "sssss|s");
}

// A schedule's plan, each of its barriers left out in turn: as many, and all of them missed.
void ExpectBarriers(const std::string& workload, const std::string& steps, int barriers) {
  const Workload canonical = CanonicalWorkload(workload);
  const absl::StatusOr<Trace> trace = ParseTrace(absl::StrCat("v1\n", steps));
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const absl::StatusOr<Schedule> schedule = Replay(canonical, TestGpu(), *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), TestGpu());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const Function function = WholeFunction(*lowered);
  const auto meaning = [&](const Stmt& body) {
    Function changed = function;
    changed.body = body;
    return CheckFunction(canonical, changed, 1e-4);
  };
  EXPECT_TRUE(meaning(function.body).ok()) << meaning(function.body).message();
  std::vector<Stmt> planned;
  VisitStmts(function.body, [&](const Stmt& stmt) {
    if (stmt->kind == StmtKind::kBarrier) planned.push_back(stmt);
    return true;
  });
  EXPECT_EQ(planned.size(), static_cast<size_t>(barriers)) << PrintFunction(function);
  for (const Stmt& barrier : planned) {
    const absl::Status hasty = meaning(RewriteStmts(function.body, [&](const Stmt& stmt) -> Stmt {
      return stmt == barrier ? std::make_shared<Seq>(std::vector<Stmt>{}) : nullptr;
    }));
    EXPECT_THAT(std::string(hasty.message()), HasSubstr("no barrier came since")) << PrintFunction(function);
  }
}

TEST(BarrierPlanTest, EachBarrierOfTilesIsNeeded) {
  ExpectBarriers(
      "workload g(a: f32[9,12], b: f32[12,8]) -> (c: f32[9,8]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) }",
      "split(t2.a0, [4])\nsplit(t2.r0, [4])\nreorder([t2.a0.0, t2.r0.0, t2.a0.1, t2.a1, t2.r0.1])\n"
      "bind(t2.a0.0, block)\ncache_write(t2, t2.a0.0)\nbind(t2.a0.1, thread)\nbind(t2.a1, thread)\n"
      "bind(t2.i.a0.1, thread)\nbind(t2.i.a1, thread)\nbind(t2.w.a0.1, thread)\nbind(t2.w.a1, thread)\n"
      "cache_read(t0, t2, t2.r0.0, shared)\nbind(t0.r.a1, thread)\n"
      "cache_read(t1, t2, t2.r0.0, shared)\nbind(t1.r.a1, thread)\n",
      2);
}

TEST(BarrierPlanTest, EachBarrierOfRowsInSharedMemoryIsNeeded) {
  ExpectBarriers(R"(workload w(x: f32[3,40]) -> (y: f32[3,40]) {
  e[i,j]: f32[3,40] = exp(x[i,j])
  f[i,j]: f32[3,40] = e[i,39-j] + 1.0
  y[i,j] = f[i,39-j] * e[i,j]
})",
                 "bind(t3.a0, block)\ncompute_at(t2, t3.a0)\ncompute_at(t1, t3.a0)\nset_scope(t1, shared)\n"
                 "set_scope(t2, shared)\nbind(t1.a1, thread)\nbind(t2.a1, thread)\nbind(t3.a1, thread)\n",
                 2);
}

}  // namespace
}  // namespace mycc
