// The places of buffers in a block's shared memory: buffers that live at different times share bytes, others
// not.
#include "absl/strings/str_cat.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/passes/passes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

Buffer Tile(const std::string& name, std::vector<int64_t> shape, int64_t row_pad = 0, int64_t swizzle = 0) {
  const Layout layout = SharedMemoryLayout(shape, /*element_bytes=*/4, row_pad, swizzle);
  return std::make_shared<BufferNode>(
      BufferNode{name, DType::kF32, std::move(shape), Scope::kShared, layout});
}

// Three buffers of 64 bytes around a body of statements that touch them.
struct Tiles {
  const Buffer a = Tile("a", {16}), b = Tile("b", {16}), c = Tile("c", {16});
  const Buffer in = MakeBuffer("in", DType::kF32, {16}), out = MakeBuffer("out", DType::kF32, {16});
  const Expr zero = IntConst(0);

  Stmt Copy(const Buffer& to, const Buffer& from) const { return Put(to, {zero}, Load(from, {zero})); }
  Stmt Around(std::vector<Stmt> body) const {
    return InScope(a, InScope(b, InScope(c, MakeSeq(std::move(body)))));
  }
};

std::vector<int64_t> Offsets(const Stmt& launch) {
  std::vector<int64_t> offsets;
  for (const SharedBuffer& buffer : PlanShared(launch).buffers) offsets.push_back(buffer.offset);
  return offsets;
}

TEST(PlanSharedTest, WhatIsDeadLeavesItsBytes) {
  const Tiles l;
  // a is dead when c begins.
  EXPECT_THAT(Offsets(l.Around({l.Copy(l.a, l.in), l.Copy(l.b, l.a), l.Copy(l.c, l.b), l.Copy(l.out, l.c)})),
              ElementsAre(0, 64, 0));
  EXPECT_EQ(PlanShared(l.Around({l.Copy(l.a, l.in), l.Copy(l.b, l.a), l.Copy(l.c, l.b)})).bytes, 128);
}

// The same with one more read of a at the end.
TEST(PlanSharedTest, WhatIsStillReadKeepsThem) {
  const Tiles l;
  EXPECT_THAT(Offsets(l.Around({l.Copy(l.a, l.in), l.Copy(l.b, l.a), l.Copy(l.c, l.b), l.Copy(l.out, l.c),
                                l.Copy(l.out, l.a)})),
              ElementsAre(0, 64, 128));
}

// The next iteration may read values of this one: all three buffers live as long as the loop, unless each
// iteration has its own.
TEST(PlanSharedTest, ALoopAroundKeepsBuffersAlive) {
  const Tiles l;
  const Var turn = MakeVar("turn", 3);
  const Stmt body = MakeSeq({l.Copy(l.a, l.in), l.Copy(l.b, l.a), l.Copy(l.c, l.b), l.Copy(l.out, l.c)});
  EXPECT_THAT(Offsets(l.Around({Loop(turn, body)})), ElementsAre(0, 64, 128));
  EXPECT_THAT(Offsets(Loop(turn, l.Around({body}))), ElementsAre(0, 64, 0));
}

// Also beside a buffer of one iteration.
TEST(PlanSharedTest, ALoopKeepsWhatItHasFinishedWithForItsNextIteration) {
  const Tiles l;
  const Stmt of_one = InScope(l.b, MakeSeq({l.Copy(l.b, l.in), l.Copy(l.out, l.b)}));
  const auto launch = [&](bool in_loop) {
    const Stmt body = MakeSeq({l.Copy(l.a, l.in), l.Copy(l.out, l.a), of_one});
    return InScope(l.a, in_loop ? Loop(MakeVar("turn", 3), body) : body);
  };
  EXPECT_THAT(Offsets(launch(false)), ElementsAre(0, 0));
  EXPECT_THAT(Offsets(launch(true)), ElementsAre(0, 64));
}

TEST(PlanSharedTest, ABufferThatFillsAGapStartsThere) {
  const Tiles l;
  const Buffer large = Tile("large", {32});
  // a (64) and b (64) are dead when the large one begins, which fits only into both; c lives above them.
  const Stmt launch = InScope(
      l.a, InScope(l.b, InScope(l.c, InScope(large, MakeSeq({l.Copy(l.a, l.in), l.Copy(l.b, l.a),
                                                             l.Copy(l.c, l.b), l.Copy(l.b, l.c),
                                                             l.Copy(large, l.c), l.Copy(l.out, large)})))));
  const SharedPlan plan = PlanShared(launch);
  EXPECT_THAT(Offsets(launch), ElementsAre(0, 64, 0, 64));
  EXPECT_EQ(plan.bytes, 64 + 128);
}

TEST(PlanSharedTest, RowsArePaddedAndSwizzlesAligned) {
  const Tiles l;
  const auto plan = [&](const Buffer& first) {
    const Buffer second = Tile("second", {4});
    return PlanShared(InScope(
        first, InScope(second, MakeSeq({Put(first, {l.zero, l.zero}, Load(l.in, {l.zero})),
                                        Put(second, {l.zero}, Load(first, {l.zero, l.zero})),
                                        Put(l.out, {l.zero},
                                            Load(second, {l.zero}) + Load(first, {l.zero, l.zero}))}))));
  };
  // Five rows of three elements, each with one more behind it.
  EXPECT_EQ(plan(Tile("first", {5, 3}, /*row_pad=*/1)).buffers[1].offset, 5 * 4 * 4);
  EXPECT_EQ(plan(Tile("first", {5, 3})).buffers[1].offset, 64) << "60 bytes, and the next begins at 16s";
  const SharedPlan swizzled = plan(Tile("first", {5, 8}, 0, /*swizzle=*/32));
  EXPECT_EQ(swizzled.buffers[0].offset % 1024, 0);
  EXPECT_EQ(swizzled.buffers[1].offset, 160);
}

TEST(PlanSharedTest, SwizzlesBeginWhereTheyRepeat) {
  const Tiles l;
  const Buffer swizzled = Tile("swizzled", {8, 32}, 0, /*swizzle=*/128);
  const Stmt launch = InScope(
      l.a, InScope(swizzled, MakeSeq({l.Copy(l.a, l.in), Put(swizzled, {l.zero, l.zero}, Load(l.a, {l.zero})),
                                      l.Copy(l.out, l.a)})));
  EXPECT_THAT(Offsets(launch), ElementsAre(0, 1024));
}

// A copy may still be on its way where statements have ended.
TEST(PlanSharedTest, AsynchronousCopiesShareNothing) {
  const Tiles l;
  const std::vector<Stmt> body = {l.Copy(l.b, l.a), l.Copy(l.c, l.b), l.Copy(l.out, l.c)};
  const auto with_first = [&](const Stmt& first) {
    std::vector<Stmt> all = {first};
    all.insert(all.end(), body.begin(), body.end());
    return Offsets(l.Around(all));
  };
  const Stmt fill = l.Copy(l.a, l.in);
  EXPECT_THAT(with_first(fill), ElementsAre(0, 64, 0));
  EXPECT_THAT(with_first(std::make_shared<Copy>(fill, CopyEngine::kThreads)), ElementsAre(0, 1024, 2048));
  const std::vector<Roles::Role> roles = {{"only", fill}};
  EXPECT_THAT(with_first(std::make_shared<Roles>(roles, std::vector<int>{})), ElementsAre(0, 1024, 2048));
}

TEST(PlanSharedTest, WhatIsNotSharedMemoryHasNoPlace) {
  const Buffer local = MakeBuffer("local", DType::kF32, {16}, Scope::kLocal);
  const SharedPlan plan = PlanShared(InScope(local, Put(local, {IntConst(0)}, F32(1))));
  EXPECT_TRUE(plan.buffers.empty());
  EXPECT_EQ(plan.bytes, 0);
}

}  // namespace
}  // namespace mycc
