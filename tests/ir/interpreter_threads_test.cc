// Threads of a block, by hand: values that threads exchange are right after a barrier, and an error without
// one in every order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int64_t kThreads = 8;
constexpr uint64_t kSeeds = 10;
const Buffer kX = MakeBuffer("x", DType::kF32, {kThreads});
const Buffer kY = MakeBuffer("y", DType::kF32, {kThreads});
const Buffer kTile = MakeBuffer("tile", DType::kF32, {kThreads}, Scope::kShared);
const Buffer kSpare = MakeBuffer("spare", DType::kF32, {kThreads}, Scope::kShared);

Stmt MeetNow() { return std::make_shared<Barrier>(); }

// thread t: body(t)
template <typename Body>
Stmt EachThread(const char* name, const Body& body) {
  const Var t = MakeVar(name, kThreads);
  return Loop(t, body(VarRef(t)), LoopKind::kThread);
}
Stmt Move(const char* name, const Buffer& to, const Buffer& from, int64_t turned) {
  return EachThread(name, [&](const Expr& t) {
    const Expr at = turned == 0 ? t : Mod(t + turned, kThreads);
    return Put(to, {t}, Load(from, {at}));
  });
}

NDArray Iota() {
  NDArray array = NDArray::Zeros(DType::kF32, {kThreads});
  for (int64_t i = 0; i < kThreads; ++i) array.Set(i, Scalar{static_cast<double>(i), 0});
  return array;
}

absl::StatusOr<std::vector<NDArray>> RunOn(const Stmt& body, uint64_t seed, Barriers barriers) {
  const Var block = MakeVar("block", 1);
  const Stmt launch = Loop(block, InScope(kTile, InScope(kSpare, body)), LoopKind::kGrid);
  return RunFunction(MakeFunction({kX}, {kY}, launch), {Iota()}, seed, barriers);
}

void ExpectPasses(const Stmt& body, Barriers barriers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto result = RunOn(body, seed, barriers);
    ASSERT_TRUE(result.ok()) << result.status();
  }
}

void ExpectFails(const Stmt& body, Barriers barriers, const testing::Matcher<std::string>& message) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto result = RunOn(body, seed, barriers);
    ASSERT_FALSE(result.ok()) << "seed " << seed;
    EXPECT_THAT(std::string(result.status().message()), message) << "seed " << seed;
  }
}

const auto kNoBarrier = HasSubstr("another thread of the block, and no barrier came since");

TEST(ThreadsTest, MeetWhereTheirLoopsEnd) {
  const Stmt body = MakeSeq({Move("a", kTile, kX, 0), Move("b", kY, kTile, 1)});
  ExpectPasses(body, Barriers::kAfterThreadLoops);
  ExpectFails(body, Barriers::kExplicit, kNoBarrier);
  ExpectPasses(MakeSeq({Move("a", kTile, kX, 0), MeetNow(), Move("b", kY, kTile, 1)}), Barriers::kExplicit);
}

TEST(ThreadsTest, WhatIsTheirOwnTheyNeedNotMeetFor) {
  const Stmt body = MakeSeq({Move("a", kTile, kX, 1), Move("b", kY, kTile, 0)});
  ExpectPasses(body, Barriers::kExplicit);
}

// Inside one loop there is no barrier.
TEST(ThreadsTest, MayNotReadWhatOthersWriteInTheSameLoop) {
  const Stmt body = EachThread("t", [&](const Expr& t) {
    return MakeSeq({Put(kTile, {t}, Load(kX, {t})), Put(kY, {t}, Load(kTile, {Mod(t + 1, kThreads)}))});
  });
  ExpectFails(body, Barriers::kAfterThreadLoops,
              AnyOf(kNoBarrier, HasSubstr("tile[1] is read before it is written"),
                    HasSubstr("is read before it is written")));
}

TEST(ThreadsTest, MayNotWriteWhatOthersStillRead) {
  const Stmt fill = MakeSeq({Move("a", kTile, kX, 0), MeetNow()});
  const auto body = [&](const Stmt& between) {
    return MakeSeq({fill, Move("b", kY, kTile, 1), between, Move("c", kTile, kX, 0)});
  };
  ExpectPasses(body(MeetNow()), Barriers::kExplicit);
  ExpectFails(body(nullptr), Barriers::kExplicit, kNoBarrier);
}

TEST(ThreadsTest, MayWriteTheSameValueAndNoOther) {
  const auto body = [&](bool same) {
    return MakeSeq(
        {EachThread(
             "t",
             [&](const Expr& t) { return Put(kTile, {IntConst(0)}, Load(kX, {same ? IntConst(3) : t})); }),
         MeetNow(),
         EachThread("u", [&](const Expr& t) { return Put(kY, {t}, Load(kTile, {IntConst(0)})); })});
  };
  ExpectPasses(body(true), Barriers::kExplicit);
  ExpectFails(body(false), Barriers::kExplicit, kNoBarrier);
}

// Outside of thread loops one thread stores for all.
TEST(ThreadsTest, WhatOneStoresForAllTheOthersDoNotHaveYet) {
  const auto body = [&](const Stmt& between) {
    return MakeSeq(
        {Put(kTile, {IntConst(0)}, Load(kX, {IntConst(5)})), between,
         EachThread("t", [&](const Expr& t) { return Put(kY, {t}, Load(kTile, {IntConst(0)})); })});
  };
  ExpectPasses(body(nullptr), Barriers::kAfterThreadLoops);
  ExpectPasses(body(MeetNow()), Barriers::kExplicit);
  ExpectFails(body(nullptr), Barriers::kExplicit, kNoBarrier);
  // Unless it reads it itself.
  const Stmt alone =
      MakeSeq({Put(kTile, {IntConst(0)}, Load(kX, {IntConst(5)})),
               Put(kSpare, {IntConst(0)}, Load(kTile, {IntConst(0)})), MeetNow(),
               EachThread("t", [&](const Expr& t) { return Put(kY, {t}, Load(kSpare, {IntConst(0)})); })});
  ExpectPasses(alone, Barriers::kExplicit);
}

// Nests number the threads: rows of 4 do the same until a loop further in tells them apart.
TEST(ThreadsTest, AreNumberedByTheirNests) {
  const Var row = MakeVar("row", 2), lane = MakeVar("lane", 4);
  const auto nest = [&](const Buffer& to, const Expr& value) {
    return Loop(row, Loop(lane, Put(to, {VarRef(row) * 4 + VarRef(lane)}, value), LoopKind::kThread),
                LoopKind::kThread);
  };
  const Expr flat = VarRef(row) * 4 + VarRef(lane);
  ExpectPasses(MakeSeq({Move("a", kTile, kX, 0), nest(kY, Load(kTile, {flat}))}), Barriers::kExplicit);
  const Stmt by_rows =
      MakeSeq({Loop(row, Put(kTile, {VarRef(row)}, Load(kX, {VarRef(row)})), LoopKind::kThread),
               nest(kY, Load(kTile, {VarRef(row)}))});
  ExpectFails(by_rows, Barriers::kExplicit, kNoBarrier);
}

TEST(ThreadsTest, CopyTogetherAndMeetForTheGroup) {
  const Var i = MakeVar("i", kThreads);
  const Stmt copy = std::make_shared<Copy>(
      Loop(i, Put(kTile, {VarRef(i)}, Load(kX, {VarRef(i)})), LoopKind::kThread), CopyEngine::kThreads);
  const Stmt commit = std::make_shared<CommitGroup>(), wait = std::make_shared<WaitGroup>(0);
  ExpectPasses(MakeSeq({copy, commit, wait, Move("b", kY, kTile, 1)}), Barriers::kExplicit);
  // A tile that some threads still read is not to be copied into.
  const auto again = [&](const Stmt& between) {
    const Var j = MakeVar("j", kThreads);
    const Stmt copy_again = std::make_shared<Copy>(
        Loop(j, Put(kTile, {VarRef(j)}, Load(kX, {VarRef(j)})), LoopKind::kThread), CopyEngine::kThreads);
    return MakeSeq({copy, commit, wait, Move("b", kY, kTile, 1), between, copy_again, commit, wait});
  };
  ExpectPasses(again(MeetNow()), Barriers::kExplicit);
  ExpectFails(again(nullptr), Barriers::kExplicit, kNoBarrier);
}

// A buffer that is allocated around a nest is in the registers of each of its threads.
TEST(ThreadsTest, AgreeOnWhatEachHasInRegisters) {
  const Buffer own = MakeBuffer("own", DType::kF32, {1}, Scope::kLocal);
  const auto body = [&](const auto& left) {
    return InScope(
        own,
        MakeSeq({EachThread("t", [&](const Expr& t) { return left(t); }), MeetNow(),
                 EachThread("u", [&](const Expr& t) { return Put(kY, {t}, Load(own, {IntConst(0)})); })}));
  };
  const auto put = [&](const Expr& at) { return Put(own, {IntConst(0)}, Load(kX, {at})); };
  for (const Barriers barriers : {Barriers::kAfterThreadLoops, Barriers::kExplicit}) {
    ExpectPasses(body([&](const Expr&) { return put(IntConst(3)); }), barriers);
    // Each thread may have held another value before.
    ExpectPasses(body([&](const Expr& t) { return MakeSeq({put(t), put(IntConst(3))}); }), barriers);
    ExpectFails(body(put), barriers, HasSubstr("own[0] is left with other values by other threads"));
  }
}

TEST(ThreadsTest, OfDifferentBlocksDoNotMeet) {
  const Buffer y = MakeBuffer("y", DType::kF32, {2, kThreads});
  const Var block = MakeVar("block", 2), t = MakeVar("t", kThreads);
  const Stmt body =
      Loop(block, Loop(t, Put(y, {VarRef(block), VarRef(t)}, Load(kX, {VarRef(t)})), LoopKind::kThread),
           LoopKind::kGrid);
  EXPECT_TRUE(RunFunction(MakeFunction({kX}, {y}, body), {Iota()}, 0, Barriers::kExplicit).ok());
}

}  // namespace
}  // namespace mycc
