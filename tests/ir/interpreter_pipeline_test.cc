// Warp-specialized pipelines by hand: what is right passes in every interleaving, and each thing left out
// fails in every one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/verify.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int64_t kSteps = 7, kWidth = 4;
constexpr uint64_t kSeeds = 30;

NDArray Iota(std::vector<int64_t> shape) {
  NDArray array = NDArray::Zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, Scalar{static_cast<double>(i), 0});
  return array;
}

constexpr int64_t kRowBytes = kWidth * 4;

// Expects the bytes of copies that signal the barrier.
Stmt ArriveAt(Expr barrier, int64_t bytes = 0) {
  return std::make_shared<Arrive>(std::move(barrier), nullptr, 1, bytes);
}
Stmt WaitFor(Expr barrier, Expr phase) {
  return std::make_shared<Wait>(std::move(barrier), std::move(phase));
}
Stmt FenceNow() { return std::make_shared<Fence>(); }

// A ring of two slots: a producer copies rows of x into it, and two consumers add up halves of a row each.
// Barriers 0 and 1 say that a slot is full, 2 and 3 that both consumers have emptied it. The flags leave
// things out.
struct Ring {
  bool wait_full = true, wait_empty = true, arrive_full = true, arrive_empty = true,
       arrive_before_copy = false;
  int64_t full_phase_off = 0, empty_phase_off = 0, expected = kRowBytes;
  int empty_count = 2;

  const Buffer x = MakeBuffer("x", DType::kF32, {kSteps, kWidth});
  const Buffer y = MakeBuffer("y", DType::kF32, {kSteps, 2});
  const Buffer slots = MakeBuffer("slots", DType::kF32, {2, kWidth}, Scope::kShared);

  Stmt Producer() const {
    const Var i = MakeVar("p.i", kSteps);
    const Expr at = VarRef(i), slot = Mod(at, 2), turn = FloorDiv(at, 2);
    const Var j = MakeVar("p.j", kWidth);
    const Stmt copy = std::make_shared<Copy>(Loop(j, Put(slots, {slot, VarRef(j)}, Load(x, {at, VarRef(j)}))),
                                             CopyEngine::kBulk, slot);
    const Stmt arrive = arrive_full ? ArriveAt(slot, expected) : nullptr;
    return Loop(
        i, MakeSeq({wait_empty ? WaitFor(slot + 2, turn - 1 + empty_phase_off) : nullptr,
                    arrive_before_copy ? arrive : nullptr, copy, arrive_before_copy ? nullptr : arrive}));
  }

  Stmt Consumer(int64_t half) const {
    const Var i = MakeVar("c.i", kSteps);
    const Expr at = VarRef(i), slot = Mod(at, 2), turn = FloorDiv(at, 2);
    const Expr sum = Load(slots, {slot, IntConst(half * 2)}) + Load(slots, {slot, IntConst(half * 2 + 1)});
    const bool arrives = arrive_empty || half == 0;
    return Loop(i, MakeSeq({wait_full ? WaitFor(slot, turn + full_phase_off) : nullptr,
                            Put(y, {at, IntConst(half)}, sum), arrives ? ArriveAt(slot + 2) : nullptr}));
  }

  Stmt Body() const {
    return std::make_shared<Roles>(
        std::vector<Roles::Role>{{"load", Producer()}, {"left", Consumer(0)}, {"right", Consumer(1)}},
        std::vector<int>{1, 1, empty_count, empty_count});
  }

  Function Build() const { return MakeFunction({x}, {y}, InScope(slots, Body())); }

  void ExpectPasses(const Function& function) const {
    const absl::Status verified = VerifyFunction(function);
    EXPECT_TRUE(verified.ok()) << verified;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto outputs = RunFunction(function, {Iota({kSteps, kWidth})}, seed);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      for (int64_t i = 0; i < kSteps * 2; ++i) EXPECT_EQ((*outputs)[0].Get(i).f, 4 * i + 1);
    }
  }

  void ExpectFails(const testing::Matcher<std::string>& message) const {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto outputs = RunFunction(Build(), {Iota({kSteps, kWidth})}, seed);
      ASSERT_FALSE(outputs.ok()) << "seed " << seed;
      EXPECT_EQ(outputs.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(outputs.status().message()), message) << "seed " << seed;
    }
  }
};

TEST(RingTest, IsRightInEveryInterleaving) {
  const Ring ring;
  ring.ExpectPasses(ring.Build());
}

TEST(RingTest, PhasesBeginAnewEachTimeTheRolesRun) {
  const Ring ring;
  ring.ExpectPasses(
      MakeFunction({ring.x}, {ring.y}, InScope(ring.slots, Loop(MakeVar("tile", 3), ring.Body()))));
}

TEST(RingTest, RunsInEachIterationOfAParallelLoop) {
  const Ring ring;
  const Buffer own = MakeBuffer("own", DType::kF32, {kSteps, 2}, Scope::kShared);
  const Var block = MakeVar("block", kSteps), j = MakeVar("j", 2);
  const Stmt body = ReplaceBuffer(InScope(ring.slots, ring.Body()), ring.y, own);
  const Stmt out = Loop(j, Put(ring.y, {VarRef(block), VarRef(j)}, Load(own, {VarRef(block), VarRef(j)})));
  ring.ExpectPasses(
      MakeFunction({ring.x}, {ring.y}, Loop(block, InScope(own, MakeSeq({body, out})), LoopKind::kParallel)));
}

// An access out of order is named by the first rule that it breaks, which depends on the interleaving.
testing::Matcher<std::string> OutOfOrder() {
  return AnyOf(HasSubstr("races with"), HasSubstr("is read before it is written"),
               HasSubstr("without having waited for the end of phase"),
               HasSubstr("which has already completed phase"));
}

TEST(RingTest, AConsumerThatDoesNotWaitRaces) {
  Ring ring;
  ring.wait_full = false;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, AProducerThatDoesNotWaitRaces) {
  Ring ring;
  ring.wait_empty = false;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, AProducerThatDoesNotArriveDeadlocks) {
  Ring ring;
  ring.arrive_full = false;
  ring.ExpectFails(
      testing::AllOf(HasSubstr("deadlock: role"),
                     HasSubstr("role left waits for phase 0 of barrier 0 (0 phases complete, 0 of 1"),
                     HasSubstr("role load waits for phase 0 of barrier 2")));
}

TEST(RingTest, AConsumerThatDoesNotArriveDeadlocks) {
  Ring ring;
  ring.arrive_empty = false;
  ring.ExpectFails(
      HasSubstr("role load waits for phase 0 of barrier 2 (0 phases complete, 1 of 2 arrivals of the next)"));
}

TEST(RingTest, AnArrivalTooManyIsNotTakenForTheNextPhase) {
  Ring ring;
  ring.empty_count = 1;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, AConsumerThatWaitsForALaterPhaseTakesItForAnEarlierOne) {
  Ring ring;
  ring.full_phase_off = 1;
  ring.ExpectFails(AnyOf(HasSubstr("one bit does not tell it from phase"), HasSubstr("deadlock")));
}

TEST(RingTest, AConsumerThatWaitsForAnEarlierPhaseRaces) {
  Ring ring;
  ring.full_phase_off = -1;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, AProducerThatWaitsForAnEarlierPhaseRaces) {
  Ring ring;
  ring.empty_phase_off = -1;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, ACopyThatTheArrivalExpectsMayComeAfterIt) {
  Ring ring;
  ring.arrive_before_copy = true;
  ring.ExpectPasses(ring.Build());
}

TEST(RingTest, ACopyAfterAnArrivalThatDoesNotExpectItBelongsToTheNextPhase) {
  Ring ring;
  ring.arrive_before_copy = true;
  ring.expected = 0;
  ring.ExpectFails(OutOfOrder());
}

TEST(RingTest, AnArrivalThatExpectsOtherBytesThanAreCopiedDeadlocks) {
  Ring ring;
  ring.expected = kRowBytes + 4;
  ring.ExpectFails(HasSubstr("(0 phases complete, 1 of 1 arrivals of the next, 4 bytes expected)"));
  ring.expected = 0;
  ring.ExpectFails(HasSubstr("(0 phases complete, 1 of 1 arrivals of the next, -16 bytes expected)"));
}

// Smaller pipelines: x -> y of one row through roles or groups.

const Buffer kX = MakeBuffer("x", DType::kF32, {kWidth});
const Buffer kY = MakeBuffer("y", DType::kF32, {kWidth});
const Buffer kStage = MakeBuffer("stage", DType::kF32, {kWidth}, Scope::kShared);
const Buffer kTile = MakeBuffer("tile", DType::kF32, {kWidth}, Scope::kShared);

Stmt CopyRow(const Buffer& to, const Buffer& from, Expr barrier = nullptr) {
  static int copies = 0;
  const Var i = MakeVar("copy" + std::to_string(copies++), kWidth);
  return std::make_shared<Copy>(Loop(i, Put(to, {VarRef(i)}, Load(from, {VarRef(i)}))), CopyEngine::kBulk,
                                std::move(barrier));
}
// to[i] = from[i], one by one.
Stmt Move(const Buffer& to, const Buffer& from) {
  const Var i = MakeVar("i", kWidth);
  return Loop(i, Put(to, {VarRef(i)}, Load(from, {VarRef(i)})));
}
Stmt RunRoles(std::vector<Roles::Role> roles, std::vector<int> counts) {
  return std::make_shared<Roles>(std::move(roles), std::move(counts));
}

void ExpectCopies(const Stmt& body) {
  const Function function = MakeFunction({kX}, {kY}, InScope(kStage, InScope(kTile, body)));
  const absl::Status verified = VerifyFunction(function);
  EXPECT_TRUE(verified.ok()) << verified;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto outputs = RunFunction(function, {Iota({kWidth})}, seed);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    for (int64_t i = 0; i < kWidth; ++i) EXPECT_EQ((*outputs)[0].Get(i).f, i);
  }
}

void ExpectFails(const Stmt& body, const testing::Matcher<std::string>& message) {
  const Function function = MakeFunction({kX}, {kY}, InScope(kStage, InScope(kTile, body)));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto outputs = RunFunction(function, {Iota({kWidth})}, seed);
    ASSERT_FALSE(outputs.ok()) << "seed " << seed;
    EXPECT_THAT(std::string(outputs.status().message()), message) << "seed " << seed;
  }
}

TEST(FenceTest, OrdinaryWritesNeedOneBeforeTheyAreCopiedAsynchronously) {
  const auto roles = [](const Stmt& before, const Stmt& after, const Stmt& late) {
    return RunRoles({{"fill", MakeSeq({before, Move(kStage, kX), after, ArriveAt(IntConst(0)), late})},
                     {"store", MakeSeq({WaitFor(IntConst(0), IntConst(0)), CopyRow(kY, kStage),
                                        std::make_shared<CommitGroup>(), std::make_shared<WaitGroup>(0)})}},
                    {1});
  };
  ExpectCopies(roles(nullptr, FenceNow(), nullptr));
  const auto message =
      HasSubstr("stage[0] is read asynchronously without a fence after the ordinary write to it");
  ExpectFails(roles(nullptr, nullptr, nullptr), message);
  ExpectFails(roles(FenceNow(), nullptr, nullptr), message);  // before the write
  ExpectFails(roles(nullptr, nullptr, FenceNow()), message);  // not ordered before the copy
}

TEST(FenceTest, TheEndOfALaunchIsOneForAllItsRoles) {
  const auto launch = [](const char* block, const Stmt& body) {
    return Loop(MakeVar(block, 1), body, LoopKind::kGrid);
  };
  const Stmt fill = RunRoles({{"fill", Move(kStage, kX)}, {"rest", FenceNow()}}, {});
  const Stmt store =
      MakeSeq({CopyRow(kY, kStage), std::make_shared<CommitGroup>(), std::make_shared<WaitGroup>(0)});
  ExpectCopies(MakeSeq({launch("b", fill), launch("c", store)}));
  ExpectFails(launch("b", MakeSeq({fill, store})),
              HasSubstr("stage[0] is read asynchronously without a fence after the ordinary write to it"));
}

TEST(AsyncCopyTest, TheSourceIsInUseUntilTheCopyIsWaitedFor) {
  const Stmt copy = CopyRow(kY, kStage), commit = std::make_shared<CommitGroup>(),
             wait = std::make_shared<WaitGroup>(0);
  const Stmt fill = MakeSeq({Move(kStage, kX), FenceNow()});
  ExpectCopies(MakeSeq({fill, copy, commit, wait, Move(kStage, kX)}));
  ExpectFails(MakeSeq({fill, copy, commit, Move(kStage, kX), wait}),
              HasSubstr("stage[0] races with a read of another role or of an asynchronous copy or product"));
  // Reading the source, also by another copy, is no conflict.
  const Buffer seen = MakeBuffer("seen", DType::kF32, {kWidth});
  ExpectCopies(
      InScope(seen, MakeSeq({fill, copy, CopyRow(kTile, kStage), Move(seen, kStage), commit, wait})));
}

TEST(AsyncCopyTest, GroupsCompleteInOrder) {
  const Stmt commit = std::make_shared<CommitGroup>();
  const auto two_groups = [&](int pending, const Buffer& read) {
    return MakeSeq({CopyRow(kStage, kX), commit, CopyRow(kTile, kX), commit,
                    std::make_shared<WaitGroup>(pending), Move(kY, read), std::make_shared<WaitGroup>(0)});
  };
  ExpectCopies(two_groups(0, kTile));
  ExpectCopies(two_groups(1, kStage));
  ExpectFails(two_groups(1, kTile), HasSubstr("tile[0] races with a write"));
  ExpectFails(two_groups(2, kStage), HasSubstr("stage[0] races with a write"));
}

TEST(AsyncCopyTest, WhatIsNotCommittedIsNotWaitedFor) {
  const Stmt commit = std::make_shared<CommitGroup>(), wait = std::make_shared<WaitGroup>(0);
  ExpectFails(MakeSeq({CopyRow(kTile, kX), wait, Move(kY, kTile), commit, wait}),
              HasSubstr("tile[0] races with a write"));
  ExpectFails(MakeSeq({CopyRow(kTile, kX), wait, Move(kY, kX)}),
              HasSubstr("ends before it has waited for the group of an asynchronous copy"));
  ExpectFails(MakeSeq({CopyRow(kTile, kX), commit, Move(kY, kX)}),
              HasSubstr("ends before it has waited for the group of an asynchronous copy"));
}

TEST(AsyncCopyTest, TwoCopiesIntoOnePlaceRace) {
  ExpectFails(MakeSeq({CopyRow(kTile, kX), CopyRow(kTile, kX), std::make_shared<CommitGroup>(),
                       std::make_shared<WaitGroup>(0), Move(kY, kTile)}),
              HasSubstr("tile[0] races with a write"));
}

TEST(AsyncCopyTest, ACopyThatSignalsABarrierMustBeWaitedFor) {
  const Stmt copy = CopyRow(kTile, kX, IntConst(0)), arrive = ArriveAt(IntConst(0), kRowBytes),
             wait = WaitFor(IntConst(0), IntConst(0));
  ExpectCopies(RunRoles({{"one", MakeSeq({copy, arrive, wait, Move(kY, kTile)})}}, {1}));
  ExpectFails(RunRoles({{"one", MakeSeq({copy, arrive, Move(kY, kX)})}}, {1}),
              HasSubstr("the roles end while an asynchronous copy that signals barrier 0 is open"));
}

TEST(AsyncCopyTest, AnotherRolesWaitIsNoWaitOfOnesOwn) {
  const Stmt copy = CopyRow(kTile, kX, IntConst(0)), arrive = ArriveAt(IntConst(0), kRowBytes),
             wait = WaitFor(IntConst(0), IntConst(0));
  const auto roles = [&](const Stmt& told) {
    return RunRoles({{"load", MakeSeq({copy, arrive, wait, ArriveAt(IntConst(1))})},
                     {"use", MakeSeq({told, Move(kY, kTile)})}},
                    {1, 1});
  };
  ExpectCopies(roles(WaitFor(IntConst(1), IntConst(0))));  // told by one who waited
  ExpectFails(roles(nullptr), OutOfOrder());
}

TEST(RolesTest, OrdinaryAccessesAreOrderedByBarriersAlone) {
  const Stmt write = Move(kStage, kX), read = Move(kY, kStage);
  ExpectCopies(RunRoles({{"a", MakeSeq({write, ArriveAt(IntConst(0))})},
                         {"b", MakeSeq({WaitFor(IntConst(0), IntConst(0)), read})}},
                        {1}));
  ExpectFails(RunRoles({{"a", MakeSeq({write, ArriveAt(IntConst(0))})},
                        {"b", MakeSeq({ArriveAt(IntConst(1)), read})}},
                       {1, 1}),
              OutOfOrder());
  ExpectFails(RunRoles({{"a", write}, {"b", write}}, {}), HasSubstr("races with a write"));
  // Statements before and after the roles are ordered.
  ExpectCopies(
      MakeSeq({write, RunRoles({{"a", Move(kTile, kStage)}, {"b", FenceNow()}}, {}), Move(kY, kTile)}));
}

TEST(RolesTest, AllWaitAtABarrierOfAll) {
  const auto role = [](const Buffer& own, const Buffer& other, int64_t half) {
    const Stmt write = Put(own, {IntConst(half)}, Load(kX, {IntConst(half)}));
    const Stmt again = Put(own, {IntConst(half + 2)}, Load(kX, {IntConst(half + 2)}));
    return MakeSeq({write, ArriveAt(IntConst(0)), WaitFor(IntConst(0), IntConst(0)),
                    Put(kY, {IntConst(1 - half)}, Load(other, {IntConst(1 - half)})), again,
                    ArriveAt(IntConst(0)), WaitFor(IntConst(0), IntConst(1)),
                    Put(kY, {IntConst(3 - half)}, Load(other, {IntConst(3 - half)}))});
  };
  ExpectCopies(RunRoles({{"a", role(kStage, kTile, 0)}, {"b", role(kTile, kStage, 1)}}, {2}));
}

// The others' order of arrivals decides whether the phase before is still open.
TEST(RolesTest, AWaitComesAfterThePhaseBefore) {
  const auto run = [](const Stmt& first, uint64_t seed) {
    const Stmt arrive = ArriveAt(IntConst(0)), wait = WaitFor(IntConst(0), IntConst(1));
    const Stmt roles =
        RunRoles({{"arrives", MakeSeq({arrive, arrive})}, {"waits", MakeSeq({first, wait})}}, {1});
    const Buffer y = MakeBuffer("y", DType::kF32, {1});
    return RunFunction(MakeFunction({}, {y}, MakeSeq({roles, Put(y, {IntConst(0)}, F32(0))})), {}, seed)
        .status();
  };
  int late = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const absl::Status hasty = run(nullptr, seed);
    EXPECT_THAT(std::string(hasty.message()),
                HasSubstr("waits for phase 1 of barrier 0 when phase 0 may be open"));
    // Both phases may be complete before the first wait.
    late += run(WaitFor(IntConst(0), IntConst(0)), seed).ok() ? 0 : 1;
  }
  EXPECT_LT(late, kSeeds);
}

TEST(RolesTest, ALatePhaseIsAnErrorNotAHang) {
  const Stmt arrive = ArriveAt(IntConst(0));
  ExpectFails(RunRoles({{"a", MakeSeq({arrive, arrive, WaitFor(IntConst(0), IntConst(0))})}}, {1}),
              HasSubstr("waits for phase 0 of barrier 0, which has already completed phase 1"));
}

// Block 1 hands block 0 what block 0 stores.
TEST(RolesTest, FlagsBetweenBlocksAreDownBeforeTheyAreRaised) {
  const Buffer parts = MakeBuffer("parts", DType::kF32, {kWidth});
  const Buffer flags = MakeBuffer("flags", DType::kI32, {1});
  const auto blocks = [&](const Stmt& before, int times) {
    const Var block = MakeVar("block", 2);
    const auto only = [&](int64_t rank, Stmt body) {
      return std::make_shared<If>(MakeBinary(Op::kEq, VarRef(block), IntConst(rank)), std::move(body));
    };
    const std::vector<Stmt> signals(times, std::make_shared<Signal>(flags, IntConst(0)));
    const Stmt give = MakeSeq({Move(parts, kX), MakeSeq(signals)});
    const Stmt take = MakeSeq({std::make_shared<Await>(flags, IntConst(0)), Move(kY, parts)});
    const Stmt roles = RunRoles({{"all", MakeSeq({only(1, give), only(0, take)})}}, {});
    return InScope(parts, InScope(flags, MakeSeq({before, Loop(block, roles, LoopKind::kGrid)})));
  };
  const auto set = [&](int64_t value) { return Put(flags, {IntConst(0)}, IntConst(value, DType::kI32)); };
  ExpectCopies(blocks(set(0), 1));
  ExpectFails(blocks(set(0), 2), HasSubstr("a value of 1 for a variable in a range of 1"));
  ExpectFails(blocks(set(1), 1), HasSubstr("a value of 1 for a variable in a range of 1"));
  ExpectFails(blocks(nullptr, 1), HasSubstr("flags[0] is read before it is written"));
}

TEST(RolesTest, MalformedPipelinesAreRefused) {
  const Stmt roles = RunRoles({{"a", FenceNow()}}, {1});
  ExpectFails(RunRoles({{"a", roles}}, {1}), HasSubstr("roles inside roles"));
  ExpectFails(RunRoles({{"a", ArriveAt(IntConst(1))}}, {1}), HasSubstr("there is no barrier 1"));
  ExpectFails(RunRoles({{"a", WaitFor(IntConst(-1), IntConst(0))}}, {1}),
              HasSubstr("there is no barrier -1"));
  ExpectFails(RunRoles({{"a", Loop(MakeVar("i", 2), FenceNow(), LoopKind::kParallel)}}, {1}),
              HasSubstr("a parallel loop inside roles"));
  ExpectFails(CopyRow(kTile, kX, IntConst(0)), HasSubstr("signal of a barrier outside roles"));
}

}  // namespace
}  // namespace mycc
