// Asynchronous products by hand: what waits for them is right in every interleaving, and each wait, group or
// arrival left out fails in every one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/verify.h"
#include "tests/ir/nest.h"

namespace mycc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int64_t kTurns = 7, kSide = 2, kElements = kSide * kSide, kTileBytes = kElements * 4;
constexpr uint64_t kOrders = 30;

// The view of a square tile: of a slot of a ring, or of a buffer by itself.
TileView Square(const Buffer& buffer, std::vector<Expr> at) { return {buffer, std::move(at), kSide, 1}; }

Stmt ProductOf(const TileView& sums, const TileView& a, const TileView& b) {
  auto product = std::make_shared<Mma>("wgmma.f16", kSide, kSide, kSide, sums, a, b, WarpGrid{2, 1});
  product->is_async = true;
  return product;
}
Stmt Committed() { return std::make_shared<CommitProducts>(); }
Stmt Until(int pending) { return std::make_shared<WaitProducts>(pending); }

// Element e of `to` at `at` = value(e), for all elements of a tile.
Stmt EachElement(const char* name, const Buffer& to, const std::vector<Expr>& at,
                 const std::function<Expr(const Expr& element)>& value) {
  const Var e = MakeVar(name, kElements);
  std::vector<Expr> indices = at;
  indices.push_back(VarRef(e));
  return Loop(e, Put(to, indices, value(VarRef(e))));
}
Stmt ToZero(const Buffer& sums) {
  return EachElement("zero", sums, {}, [](const Expr&) { return F32(0); });
}
Stmt ToOutput(const Buffer& y, const Buffer& sums) {
  return EachElement("out", y, {}, [&](const Expr& e) { return Load(sums, {e}); });
}

absl::Status RunInAllOrders(const Function& function, const NDArray& x, const std::vector<double>& expected) {
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    const auto outputs = RunFunction(function, {x}, seed);
    if (!outputs.ok()) return outputs.status();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*outputs)[0].Get(i).f, expected[i]);
  }
  return absl::OkStatus();
}

void ExpectFailsInAllOrders(const Function& function, const NDArray& x,
                            const testing::Matcher<std::string>& message) {
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    const auto outputs = RunFunction(function, {x}, seed);
    ASSERT_FALSE(outputs.ok()) << "seed " << seed;
    EXPECT_THAT(std::string(outputs.status().message()), message) << "seed " << seed;
  }
}

NDArray Counting(std::vector<int64_t> shape) {
  NDArray array = NDArray::Zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, Scalar{static_cast<double>(i % 5) - 2, 0});
  return array;
}

// A ring of two slots: a role copies tiles of x into it, and two warpgroups add up their squares. Each turn's
// product begins while the one before runs, and the slot of that one is released afterwards. Barriers 0 and 1
// say that a slot is full, 2 and 3 that both warpgroups have released it. The members leave things out.
struct SquaresOfARing {
  bool commit = true, wait_at_end = true, release_at_once = false;
  int pending = 1, arrivals = 2, count = 2;

  const Buffer x = MakeBuffer("x", DType::kF32, {kTurns, kElements});
  const Buffer y = MakeBuffer("y", DType::kF32, {kElements});
  const Buffer slots = MakeBuffer("slots", DType::kF32, {2, kElements}, Scope::kShared);
  const Buffer sums = MakeBuffer("sums", DType::kF32, {kElements}, Scope::kLocal);

  Stmt Producer() const {
    const Var i = MakeVar("p.i", kTurns);
    const Expr at = VarRef(i), slot = Mod(at, 2);
    const Stmt tile = EachElement("p.e", slots, {slot}, [&](const Expr& e) { return Load(x, {at, e}); });
    return Loop(i, MakeSeq({std::make_shared<Wait>(slot + 2, FloorDiv(at, 2) - 1),
                            std::make_shared<Copy>(tile, CopyEngine::kBulk, slot),
                            std::make_shared<Arrive>(slot, nullptr, 1, kTileBytes)}));
  }

  Stmt Release(const Expr& turn) const {
    return std::make_shared<Arrive>(Mod(turn, 2) + 2, nullptr, arrivals);
  }

  Stmt Consumer() const {
    const Var i = MakeVar("c.i", kTurns);
    const Expr at = VarRef(i), slot = Mod(at, 2);
    const TileView tile = Square(slots, {slot, IntConst(0)});
    const Stmt release = release_at_once
                             ? Release(at)
                             : std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), at), Release(at - 1));
    const Stmt loop = Loop(i, MakeSeq({std::make_shared<Wait>(slot, FloorDiv(at, 2)),
                                       ProductOf(Square(sums, {IntConst(0)}), tile, tile),
                                       commit ? Committed() : nullptr, Until(pending), release}));
    return InScope(sums,
                   MakeSeq({ToZero(sums), loop, wait_at_end ? Until(0) : nullptr,
                            release_at_once ? nullptr : Release(IntConst(kTurns - 1)), ToOutput(y, sums)}));
  }

  Function Build() const {
    const Stmt roles =
        std::make_shared<Roles>(std::vector<Roles::Role>{{"copy", Producer()}, {"multiply", Consumer()}},
                                std::vector<int>{1, 1, count, count});
    return MakeFunction({x}, {y}, InScope(slots, roles));
  }

  std::vector<double> Expected() const {
    const NDArray tiles = Counting({kTurns, kElements});
    std::vector<double> result(kElements);
    for (int64_t t = 0; t < kTurns; ++t) {
      const auto at = [&](int64_t row, int64_t column) {
        return tiles.Get(t * kElements + row * kSide + column).f;
      };
      for (int64_t e = 0; e < kElements; ++e) {
        for (int64_t k = 0; k < kSide; ++k) result[e] += at(e / kSide, k) * at(k, e % kSide);
      }
    }
    return result;
  }
  void ExpectFails(const testing::Matcher<std::string>& message) const {
    ExpectFailsInAllOrders(Build(), Counting({kTurns, kElements}), message);
  }
};

TEST(ProductRingTest, IsRightInEveryInterleaving) {
  const SquaresOfARing ring;
  const absl::Status verified = VerifyFunction(ring.Build());
  EXPECT_TRUE(verified.ok()) << verified;
  const absl::Status run = RunInAllOrders(ring.Build(), Counting({kTurns, kElements}), ring.Expected());
  EXPECT_TRUE(run.ok()) << run;
}

testing::Matcher<std::string> OverwritesASlotInUse() {
  return AllOf(HasSubstr("slots["),
               HasSubstr("races with a read of another role or of an asynchronous copy or product"),
               HasSubstr("of role copy"));
}

TEST(ProductRingTest, ASlotThatIsReleasedBeforeItsProductIsCompleteRaces) {
  SquaresOfARing ring;
  ring.release_at_once = true;
  ring.ExpectFails(OverwritesASlotInUse());
  ring.pending = 0;
  const absl::Status run = RunInAllOrders(ring.Build(), Counting({kTurns, kElements}), ring.Expected());
  EXPECT_TRUE(run.ok()) << run;
}

TEST(ProductRingTest, AWaitThatLeavesOneTooManyRaces) {
  SquaresOfARing ring;
  ring.pending = 2;
  ring.ExpectFails(OverwritesASlotInUse());
}

TEST(ProductRingTest, AGroupThatIsNotClosedIsNotWaitedFor) {
  SquaresOfARing ring;
  ring.commit = false;
  ring.ExpectFails(AnyOf(OverwritesASlotInUse(), HasSubstr("sums[0] races with a write")));
}

TEST(ProductRingTest, SumsThatAreReadBeforeTheLastWaitRace) {
  SquaresOfARing ring;
  ring.wait_at_end = false;
  ring.ExpectFails(AllOf(HasSubstr("sums[0] races with a write"), HasSubstr("of role multiply")));
}

TEST(ProductRingTest, AWarpgroupThatDoesNotArriveDeadlocks) {
  SquaresOfARing ring;
  ring.arrivals = 1;
  ring.ExpectFails(
      HasSubstr("role copy waits for phase 0 of barrier 2 (0 phases complete, 1 of 2 arrivals of the next)"));
}

TEST(ProductRingTest, ABarrierThatCountsOneWarpgroupOfTwoCompletesTwice) {
  SquaresOfARing ring;
  ring.count = 1;
  ring.ExpectFails(AnyOf(HasSubstr("which has already completed phase"),
                         HasSubstr("without having waited for the end of phase"), OverwritesASlotInUse()));
}

// Products in a row, of tiles that x is copied to.
struct ProductsInARow {
  const Buffer x = MakeBuffer("x", DType::kF32, {kElements});
  const Buffer y = MakeBuffer("y", DType::kF32, {kElements});
  const Buffer tile = MakeBuffer("tile", DType::kF32, {kElements}, Scope::kShared);
  const Buffer sums = MakeBuffer("sums", DType::kF32, {kElements}, Scope::kLocal);
  const Buffer more = MakeBuffer("more", DType::kF32, {kElements}, Scope::kLocal);

  Stmt Fill() const {
    return EachElement("fill", tile, {}, [&](const Expr& e) { return Load(x, {e}); });
  }
  Stmt Into(const Buffer& into) const { return Into(into, tile); }
  Stmt Into(const Buffer& into, const Buffer& a) const {
    return ProductOf(Square(into, {IntConst(0)}), Square(a, {IntConst(0)}), Square(tile, {IntConst(0)}));
  }
  Function Build(std::vector<Stmt> stmts) const {
    std::vector<Stmt> all = {ToZero(sums), ToZero(more), Fill(), std::make_shared<Fence>()};
    all.insert(all.end(), stmts.begin(), stmts.end());
    all.push_back(ToOutput(y, sums));
    return MakeFunction({x}, {y}, InScope(tile, InScope(sums, InScope(more, MakeSeq(all)))));
  }
  void ExpectPasses(std::vector<Stmt> stmts) const {
    const auto run = RunFunction(Build(std::move(stmts)), {Counting({kElements})});
    EXPECT_TRUE(run.ok()) << run.status();
  }
  void ExpectFails(std::vector<Stmt> stmts, const testing::Matcher<std::string>& message) const {
    ExpectFailsInAllOrders(Build(std::move(stmts)), Counting({kElements}), message);
  }
};

TEST(ProductTest, ThoseIntoTheSameSumsRunInOrder) {
  const ProductsInARow row;
  row.ExpectPasses({row.Into(row.sums), Committed(), row.Into(row.sums), Committed(), Until(0)});
  row.ExpectFails({row.Into(row.sums), Committed(), row.Into(row.sums), Committed(), Until(1)},
                  HasSubstr("sums[0] races with a write"));
}

TEST(ProductTest, GroupsCompleteInOrder) {
  const ProductsInARow row;
  const std::vector<Stmt> two = {row.Into(row.sums), Committed(), row.Into(row.more), Committed(), Until(1)};
  const auto then = [&](const Buffer& read) {
    std::vector<Stmt> all = two;
    all.insert(all.end(), {ToOutput(row.y, read), Until(0)});
    return all;
  };
  row.ExpectPasses(then(row.sums));
  row.ExpectFails(then(row.more), HasSubstr("more[0] races with a write"));
}

TEST(ProductTest, OperandsAreInUseUntilItIsWaitedFor) {
  const ProductsInARow row;
  row.ExpectPasses({row.Into(row.sums), Committed(), Until(0), row.Fill()});
  row.ExpectFails({row.Into(row.sums), Committed(), row.Fill(), Until(0)},
                  HasSubstr("tile[0] races with a read"));
}

TEST(ProductTest, SumsAreNoOperandBeforeTheyAreWaitedFor) {
  const ProductsInARow row;
  row.ExpectPasses(
      {row.Into(row.more), Committed(), Until(0), row.Into(row.sums, row.more), Committed(), Until(0)});
  row.ExpectFails({row.Into(row.more), Committed(), row.Into(row.sums, row.more), Committed(), Until(0)},
                  HasSubstr("more[0] races with a write"));
  // Registers that a product reads are nobody's to write either.
  row.ExpectFails({row.Into(row.sums, row.more), Committed(), ToZero(row.more), Until(0)},
                  HasSubstr("more[0] races with a read"));
}

TEST(ProductTest, OrdinaryWritesToSharedOperandsNeedAFence) {
  const ProductsInARow row;
  row.ExpectPasses({row.Fill(), std::make_shared<Fence>(), row.Into(row.sums), Committed(), Until(0)});
  row.ExpectFails({row.Fill(), row.Into(row.sums), Committed(), Until(0)},
                  HasSubstr("tile[0] is read asynchronously without a fence after the ordinary write to it"));
}

TEST(ProductTest, NothingEndsBeforeItIsComplete) {
  const ProductsInARow row;
  const auto message = HasSubstr("ends before it has waited for the group of an asynchronous product");
  row.ExpectFails({row.Into(row.more), Committed()}, message);
  row.ExpectFails({row.Into(row.more), Until(0)}, message);
}

}  // namespace
}  // namespace mycc
