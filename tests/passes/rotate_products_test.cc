// Loops with two products that are rotated: the order of what they become, turns of warpgroups, and which
// loops stay. Whole kernels are in tests/tuner/streamed_test.cc.
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/passes/tensor_core_product.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Var kRotatedTurn = MakeVar("j", 5);
const Buffer kQueries = MakeBuffer("q", DType::kF16, {128, 64}, Scope::kShared);
const Buffer kKeys = MakeBuffer("k", DType::kF16, {2, 64, 64}, Scope::kShared);
const Buffer kValues = MakeBuffer("v", DType::kF16, {2, 64, 64}, Scope::kShared);
const Buffer kWeights = MakeBuffer("p", DType::kF16, {128, 64}, Scope::kLocal);
const Buffer kScores = MakeBuffer("s", DType::kF32, {128, 64}, Scope::kAccumulator);
const Buffer kResult = MakeBuffer("o", DType::kF32, {128, 64}, Scope::kAccumulator);

Stmt Product(const Buffer& into, const Buffer& a, const Buffer& ring, int warpgroups) {
  const std::vector<Expr> origin = {IntConst(0), IntConst(0)};
  const std::vector<Expr> slot = {Mod(VarRef(kRotatedTurn), 2), IntConst(0), IntConst(0)};
  auto mma = std::make_shared<Mma>("wgmma.f16", 128, 64, 64, TileView{into, origin, 64, 1},
                                   TileView{a, origin, 64, 1}, TileView{ring, slot, 64, 1});
  mma->warps = {warpgroups, 1};
  return mma;
}
Stmt WaitFor(int ring) {
  return std::make_shared<Wait>(Mod(VarRef(kRotatedTurn), 2) + 2 * ring, FloorDiv(VarRef(kRotatedTurn), 2));
}
Stmt Release(int ring, const Buffer& tile) {
  return std::make_shared<Arrive>(Mod(VarRef(kRotatedTurn), 2) + 2 * ring, nullptr, 1, 0,
                                  std::vector<Buffer>{tile});
}
Stmt Weigh() {
  const std::vector<Expr> first = {IntConst(0), IntConst(0)};
  return Put(kWeights, first, MakeCast(DType::kF16, Load(kScores, first)));
}
std::vector<Stmt> Body(int warpgroups) {
  return {WaitFor(0), Product(kScores, kQueries, kKeys, warpgroups),   Release(4, kKeys),  Weigh(),
          WaitFor(1), Product(kResult, kWeights, kValues, warpgroups), Release(5, kValues)};
}
Stmt Consumer(const std::vector<Stmt>& body) {
  const Stmt copy = std::make_shared<Arrive>(IntConst(0));
  return std::make_shared<Roles>(
      std::vector<Roles::Role>{{"copy", copy}, {"compute", Loop(kRotatedTurn, MakeSeq(body))}},
      std::vector<int>(12, 1));
}
std::string Rotated(const std::vector<Stmt>& body) {
  return PrintStmt(As<Roles>(RotateProducts(Consumer(body))).roles[1].body);
}

constexpr char kRotated[] = R"(wait barrier[0] phase 0
mma wgmma.f16 128x64x64: s[0,0]<64,1> += q[0,0]<64,1> * k[0,0,0]<64,1>
arrive barrier[8] releasing k
p[0,0] = f16(s[0,0])
for j in 4
  wait barrier[(j + 1) % 2] phase (j + 1) // 2
  mma wgmma.f16 128x64x64: s[0,0]<64,1> += q[0,0]<64,1> * k[(j+1)%2,0,0]<64,1>
  wait barrier[j % 2 + 2] phase j // 2
  mma wgmma.f16 128x64x64: o[0,0]<64,1> += p[0,0]<64,1> * v[j%2,0,0]<64,1>
  arrive barrier[(j + 1) % 2 + 8] releasing k
  p[0,0] = f16(s[0,0])
  arrive barrier[j % 2 + 10] releasing v
wait barrier[2] phase 2
mma wgmma.f16 128x64x64: o[0,0]<64,1> += p[0,0]<64,1> * v[0,0,0]<64,1>
arrive barrier[10] releasing v
)";

TEST(RotateProductsTest, ANextProductComesFirst) { EXPECT_EQ(Rotated(Body(1)), kRotated); }

TEST(RotateProductsTest, WarpgroupsTakeTurns) {
  const std::string text = Rotated(Body(2));
  EXPECT_THAT(text, HasSubstr("phase (j + 1) // 2\n  take turn\n  mma "));
  EXPECT_THAT(text, HasSubstr("\n  pass turn\n  arrive barrier[(j + 1) % 2 + 8] releasing k\n"));
}

// Its threads write the values that the second product reads, so that a barrier stands before it.
TEST(RotateProductsTest, NoTurnsAroundBarriers) {
  std::vector<Stmt> body = Body(2);
  const std::vector<Expr> first = {IntConst(0), IntConst(0), IntConst(0)};
  body.insert(body.begin() + 3, Put(kValues, first, Load(kValues, first)));
  EXPECT_THAT(Rotated(body), Not(HasSubstr("turn")));
}

TEST(RotateProductsTest, OtherLoopsStay) {
  const auto stays = [](const std::vector<Stmt>& body) {
    const Stmt roles = Consumer(body);
    EXPECT_EQ(RotateProducts(roles), roles);
  };
  std::vector<Stmt> one = Body(1), joined = Body(1), after = Body(1);
  one.erase(one.begin() + 5);
  stays(one);
  // The next product with keys would overwrite what this turn's product reads.
  joined[5] = Product(kResult, kScores, kValues, 1);
  stays(joined);
  after.push_back(Weigh());
  stays(after);
}

}  // namespace
}  // namespace mycc
