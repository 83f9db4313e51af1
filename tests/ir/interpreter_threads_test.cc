// Threads of a block, by hand: values that threads exchange are right after a barrier, and an error without
// one in every order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/vector_stmts.h"
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

// Threads synchronize where their loops end, or in a launch at barriers.
enum class Code { kLoops, kLaunch };

Stmt Launched(const Stmt& body) {
  LaunchShape shape;
  shape.threads = 32;
  return std::make_shared<Launch>(shape, body);
}

absl::StatusOr<std::vector<NDArray>> RunOn(const Stmt& body, uint64_t seed, Code code) {
  const Var block = MakeVar("block", 1);
  const Stmt grid = Loop(block, InScope(kTile, InScope(kSpare, body)), LoopKind::kGrid);
  return RunFunction(MakeFunction({kX}, {kY}, code == Code::kLaunch ? Launched(grid) : grid), {Iota()}, seed);
}

void ExpectPasses(const Stmt& body, Code code) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto result = RunOn(body, seed, code);
    ASSERT_TRUE(result.ok()) << result.status();
  }
}

void ExpectFails(const Stmt& body, Code code, const testing::Matcher<std::string>& message) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto result = RunOn(body, seed, code);
    ASSERT_FALSE(result.ok()) << "seed " << seed;
    EXPECT_THAT(std::string(result.status().message()), message) << "seed " << seed;
  }
}

const auto kNoBarrier = HasSubstr("another thread of the block, and no barrier came since");

TEST(ThreadsTest, MeetWhereTheirLoopsEnd) {
  const Stmt body = MakeSeq({Move("a", kTile, kX, 0), Move("b", kY, kTile, 1)});
  ExpectPasses(body, Code::kLoops);
  ExpectFails(body, Code::kLaunch, kNoBarrier);
  ExpectPasses(MakeSeq({Move("a", kTile, kX, 0), MeetNow(), Move("b", kY, kTile, 1)}), Code::kLaunch);
}

TEST(ThreadsTest, WhatIsTheirOwnTheyNeedNotMeetFor) {
  const Stmt body = MakeSeq({Move("a", kTile, kX, 1), Move("b", kY, kTile, 0)});
  ExpectPasses(body, Code::kLaunch);
}

// Inside one loop there is no barrier.
TEST(ThreadsTest, MayNotReadWhatOthersWriteInTheSameLoop) {
  const Stmt body = EachThread("t", [&](const Expr& t) {
    return MakeSeq({Put(kTile, {t}, Load(kX, {t})), Put(kY, {t}, Load(kTile, {Mod(t + 1, kThreads)}))});
  });
  ExpectFails(body, Code::kLoops,
              AnyOf(kNoBarrier, HasSubstr("tile[1] is read before it is written"),
                    HasSubstr("is read before it is written")));
}

TEST(ThreadsTest, MayNotWriteWhatOthersStillRead) {
  const Stmt fill = MakeSeq({Move("a", kTile, kX, 0), MeetNow()});
  const auto body = [&](const Stmt& between) {
    return MakeSeq({fill, Move("b", kY, kTile, 1), between, Move("c", kTile, kX, 0)});
  };
  ExpectPasses(body(MeetNow()), Code::kLaunch);
  ExpectFails(body(nullptr), Code::kLaunch, kNoBarrier);
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
  ExpectPasses(body(true), Code::kLaunch);
  ExpectFails(body(false), Code::kLaunch, kNoBarrier);
}

// Outside of thread loops one thread stores for all.
TEST(ThreadsTest, WhatOneStoresForAllTheOthersDoNotHaveYet) {
  const auto body = [&](const Stmt& between) {
    return MakeSeq(
        {Put(kTile, {IntConst(0)}, Load(kX, {IntConst(5)})), between,
         EachThread("t", [&](const Expr& t) { return Put(kY, {t}, Load(kTile, {IntConst(0)})); })});
  };
  ExpectPasses(body(nullptr), Code::kLoops);
  ExpectPasses(body(MeetNow()), Code::kLaunch);
  ExpectFails(body(nullptr), Code::kLaunch, kNoBarrier);
  // Unless it reads it itself.
  const Stmt alone =
      MakeSeq({Put(kTile, {IntConst(0)}, Load(kX, {IntConst(5)})),
               Put(kSpare, {IntConst(0)}, Load(kTile, {IntConst(0)})), MeetNow(),
               EachThread("t", [&](const Expr& t) { return Put(kY, {t}, Load(kSpare, {IntConst(0)})); })});
  ExpectPasses(alone, Code::kLaunch);
}

// Nests number the threads: rows of 4 do the same until a loop further in tells them apart.
TEST(ThreadsTest, AreNumberedByTheirNests) {
  const Var row = MakeVar("row", 2), lane = MakeVar("lane", 4);
  const auto nest = [&](const Buffer& to, const Expr& value) {
    return Loop(row, Loop(lane, Put(to, {VarRef(row) * 4 + VarRef(lane)}, value), LoopKind::kThread),
                LoopKind::kThread);
  };
  const Expr flat = VarRef(row) * 4 + VarRef(lane);
  ExpectPasses(MakeSeq({Move("a", kTile, kX, 0), nest(kY, Load(kTile, {flat}))}), Code::kLaunch);
  const Stmt by_rows =
      MakeSeq({Loop(row, Put(kTile, {VarRef(row)}, Load(kX, {VarRef(row)})), LoopKind::kThread),
               nest(kY, Load(kTile, {VarRef(row)}))});
  ExpectFails(by_rows, Code::kLaunch, kNoBarrier);
}

TEST(ThreadsTest, CopyTogetherAndMeetForTheGroup) {
  const Var i = MakeVar("i", kThreads);
  const Stmt copy = std::make_shared<Copy>(
      Loop(i, Put(kTile, {VarRef(i)}, Load(kX, {VarRef(i)})), LoopKind::kThread), CopyEngine::kThreads);
  const Stmt commit = std::make_shared<CommitGroup>(), wait = std::make_shared<WaitGroup>(0);
  ExpectPasses(MakeSeq({copy, commit, wait, Move("b", kY, kTile, 1)}), Code::kLaunch);
  // A tile that some threads still read is not to be copied into.
  const auto again = [&](const Stmt& between) {
    const Var j = MakeVar("j", kThreads);
    const Stmt copy_again = std::make_shared<Copy>(
        Loop(j, Put(kTile, {VarRef(j)}, Load(kX, {VarRef(j)})), LoopKind::kThread), CopyEngine::kThreads);
    return MakeSeq({copy, commit, wait, Move("b", kY, kTile, 1), between, copy_again, commit, wait});
  };
  ExpectPasses(again(MeetNow()), Code::kLaunch);
  ExpectFails(again(nullptr), Code::kLaunch, kNoBarrier);
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
  for (const Code code : {Code::kLoops, Code::kLaunch}) {
    ExpectPasses(body([&](const Expr&) { return put(IntConst(3)); }), code);
    // Each thread may have held another value before.
    ExpectPasses(body([&](const Expr& t) { return MakeSeq({put(t), put(IntConst(3))}); }), code);
    ExpectFails(body(put), code, HasSubstr("own[0] is left with other values by other threads"));
  }
}

// Copies through registers are complete where they end, and one thread's part is not another's.
TEST(ThreadsTest, CopyThroughRegistersAndMeet) {
  const Var i = MakeVar("i", kThreads);
  auto copy =
      std::make_shared<Copy>(Loop(i, Put(kTile, {VarRef(i)}, Load(kX, {VarRef(i)}))), CopyEngine::kRegisters);
  copy->chunk = 4;
  ExpectPasses(MakeSeq({copy, MeetNow(), Move("b", kY, kTile, 1)}), Code::kLaunch);
  ExpectFails(MakeSeq({copy, Move("b", kY, kTile, 0)}), Code::kLaunch, kNoBarrier);
}

// Buffers at the same place in shared memory: the second one ends the life of the first.
TEST(ThreadsTest, MeetBeforeTheyUseBytesForAnotherBuffer) {
  const auto run = [&](const std::vector<Stmt>& stmts, uint64_t seed) {
    const Stmt inside = std::make_shared<Alloc>(
        kTile, std::make_shared<Alloc>(kSpare, MakeSeq(stmts), /*offset=*/16), /*offset=*/0);
    return RunFunction(MakeFunction({kX}, {kY}, Launched(inside)), {Iota()}, seed).status();
  };
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Stmt fill = Move("a", kTile, kX, 0), use = Move("b", kY, kTile, 0), next = Move("c", kSpare, kX, 0);
    EXPECT_TRUE(run({fill, use, MeetNow(), next}, seed).ok());
    EXPECT_THAT(std::string(run({fill, use, next}, seed).message()),
                HasSubstr("has bytes of a buffer that another thread of the block touched"));
    EXPECT_THAT(std::string(run({fill, MeetNow(), next, MeetNow(), use}, seed).message()),
                HasSubstr("is read before it is written"));
  }
}

// The first thread of a group reads and writes an element in memory.
TEST(ThreadsTest, MeetAfterTheyCombineInMemory) {
  const auto body = [&](const Stmt& between, int64_t reader) {
    const Stmt combines = EachThread("t", [&](const Expr& t) {
      auto combine =
          std::make_shared<Combine>(ReduceOp::kSum, kTile, std::vector<Expr>{IntConst(0)}, Load(kX, {t}));
      combine->groups = {{1, kThreads, {{ExchangeKind::kLanes, 1, kThreads}}}};
      return combine;
    });
    const Stmt read = EachThread("u", [&](const Expr& t) {
      const Expr is_reader = MakeBinary(Op::kEq, t, IntConst(reader));
      return Put(kY, {t}, MakeSelect(is_reader, Load(kTile, {IntConst(0)}), Load(kX, {t})));
    });
    return MakeSeq({Put(kTile, {IntConst(0)}, F32(0)), combines, between, read});
  };
  ExpectPasses(body(MeetNow(), 5), Code::kLaunch);
  ExpectPasses(body(nullptr, 0), Code::kLaunch);
  ExpectFails(body(nullptr, 5), Code::kLaunch, kNoBarrier);
}

// y = x by vectors of `count` elements from `first` on.
Stmt ByVectors(int64_t first, int64_t count) {
  const Var v = MakeVar("v", 4);
  const Buffer from = MakeBuffer("x_v", DType::kF32, {4}), to = MakeBuffer("y_v", DType::kF32, {4});
  const Stmt loop = Loop(v, Put(to, {VarRef(v)}, Load(from, {VarRef(v)})), LoopKind::kVector);
  return std::make_shared<Vectors>(std::vector<VectorMove>{{from, kX, {IntConst(first)}, count}}, loop,
                                   std::vector<VectorMove>{{to, kY, {IntConst(first)}, count}}, true);
}

TEST(ThreadsTest, MoveVectorsWithinTensorsAtTheirAlignment) {
  ExpectPasses(MakeSeq({ByVectors(0, 4), ByVectors(4, 4)}), Code::kLaunch);
  ExpectPasses(MakeSeq({ByVectors(0, 4), ByVectors(2, 2), ByVectors(4, 2)}), Code::kLaunch);
  ExpectFails(MakeSeq({ByVectors(2, 4)}), Code::kLaunch,
              HasSubstr("a vector of 4 elements, 4 at a time, begins at element 2 of the 8 of x"));
  ExpectFails(MakeSeq({ByVectors(6, 2)}), Code::kLaunch, HasSubstr("begins at element 6 of the 8 of x"));
}

TEST(ThreadsTest, OfDifferentBlocksDoNotMeet) {
  const Buffer y = MakeBuffer("y", DType::kF32, {2, kThreads});
  const Var block = MakeVar("block", 2), t = MakeVar("t", kThreads);
  const Stmt body =
      Loop(block, Loop(t, Put(y, {VarRef(block), VarRef(t)}, Load(kX, {VarRef(t)})), LoopKind::kThread),
           LoopKind::kGrid);
  EXPECT_TRUE(RunFunction(MakeFunction({kX}, {y}, Launched(body)), {Iota()}, 0).ok());
}

}  // namespace
}  // namespace mycc
