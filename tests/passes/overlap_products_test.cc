// The pass that makes products asynchronous: where it waits for them, and when operands are released. Whole
// kernels are in tensor_core_passes_test.cc and pipeline_loops_test.cc.
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ir/nest.h"
#include "tests/passes/tensor_core_product.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

Buffer SharedTile(const char* name) { return MakeBuffer(name, DType::kF16, {2, 64, 64}, Scope::kShared); }
Buffer SumsOf(const char* name) { return MakeBuffer(name, DType::kF32, {64, 64}, Scope::kAccumulator); }

const Buffer kA = SharedTile("a"), kB = SharedTile("b"), kC = SharedTile("c");
const Buffer kSums = SumsOf("sums"), kMore = SumsOf("more");
const Buffer kRow = MakeBuffer("row", DType::kF32, {64});

TileView SlotOf(const Buffer& buffer, const Expr& slot) {
  return {buffer, {slot, IntConst(0), IntConst(0)}, 64, 1};
}

Stmt ProductBy(const char* instruction, const Buffer& into, const Buffer& a, const Buffer& b,
               const Expr& slot) {
  return std::make_shared<Mma>(instruction, 64, 64, 64, TileView{into, {IntConst(0), IntConst(0)}, 64, 1},
                               SlotOf(a, slot), SlotOf(b, slot));
}
Stmt ProductInto(const Buffer& into, const Buffer& a, const Buffer& b, const Expr& slot = IntConst(0)) {
  return ProductBy("wgmma.f16", into, a, b, slot);
}

// to[0] = from[0], a statement that accesses both.
Stmt MoveOne(const Buffer& to, const Buffer& from) {
  const auto first = [](const Buffer& buffer) { return std::vector<Expr>(buffer->rank(), IntConst(0)); };
  return Put(to, first(to), MakeCast(to->dtype, Load(from, first(from))));
}
Stmt AsOneRole(const Stmt& body) {
  return std::make_shared<Roles>(std::vector<Roles::Role>{{"compute", body}}, std::vector<int>{1, 1, 1, 1});
}
Stmt ArriveOnce(const Expr& barrier) { return std::make_shared<Arrive>(barrier); }

std::string Overlapped(const Stmt& body) { return PrintStmt(OverlapProducts(body)); }
// The code that a role's becomes, without the lines of the roles around it.
std::string OverlappedRole(const Stmt& body) {
  return PrintStmt(As<Roles>(OverlapProducts(AsOneRole(body))).roles[0].body);
}

constexpr char kInto[] = "mma async wgmma.f16 64x64x64: ";

TEST(OverlapProductsTest, EachProductIsWaitedForBeforeWhatNeedsIt) {
  const std::string first = absl::StrCat(kInto, "sums[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>\n"),
                    second = absl::StrCat(kInto, "more[0,0]<64,1> += a[0,0,0]<64,1> * c[0,0,0]<64,1>\n");
  const Stmt products = MakeSeq({ProductInto(kSums, kA, kB), ProductInto(kMore, kA, kC)});
  const std::string both = absl::StrCat(first, "commit products\n", second, "commit products\n");
  EXPECT_EQ(Overlapped(products), both + "wait products until 0 pending, completing sums, more\n");
  // The sums of the first, then those of the second.
  EXPECT_EQ(Overlapped(MakeSeq({products, MoveOne(kRow, kRow), MoveOne(kRow, kSums), MoveOne(kMore, kRow)})),
            both +
                "row[0] = row[0]\n"
                "wait products until 1 pending, completing sums\n"
                "row[0] = sums[0,0]\n"
                "wait products until 0 pending, completing more\n"
                "more[0,0] = row[0]\n");
  // An operand of the second.
  const Stmt overwrite = std::make_shared<Copy>(MoveOne(kC, kA), CopyEngine::kThreads);
  EXPECT_EQ(Overlapped(MakeSeq({products, MoveOne(kRow, kA), overwrite})),
            both +
                "row[0] = f32(a[0,0,0])\n"
                "wait products until 0 pending, completing sums, more\n"
                "copy by threads\n"
                "  c[0,0,0] = a[0,0,0]\n");
  // Statements that let others go on.
  for (const Stmt& released : {ArriveOnce(IntConst(0)), Stmt(std::make_shared<Barrier>())}) {
    EXPECT_EQ(OverlappedRole(MakeSeq({products, released})),
              both + "wait products until 0 pending, completing sums, more\n" + PrintStmt(released));
  }
}

TEST(OverlapProductsTest, ProductsIntoTheSameSumsDoNotWaitForEachOther) {
  EXPECT_EQ(Overlapped(MakeSeq({ProductInto(kSums, kA, kB), ProductInto(kSums, kA, kC)})),
            absl::StrCat(kInto, "sums[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>\ncommit products\n",
                         kInto, "sums[0,0]<64,1> += a[0,0,0]<64,1> * c[0,0,0]<64,1>\ncommit products\n",
                         "wait products until 0 pending, completing sums\n"));
  EXPECT_EQ(
      Overlapped(MakeSeq({ProductInto(kSums, kA, kB), ProductInto(kC, kA, kB), ProductInto(kSums, kA, kC)})),
      absl::StrCat(kInto, "sums[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>\ncommit products\n", kInto,
                   "c[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>\ncommit products\n",
                   "wait products until 0 pending, completing sums, c\n", kInto,
                   "sums[0,0]<64,1> += a[0,0,0]<64,1> * c[0,0,0]<64,1>\ncommit products\n",
                   "wait products until 0 pending, completing sums\n"));
}

// A turn of attention: the second product takes what threads made of the sums of the first.
TEST(OverlapProductsTest, ALoopOfProductsIsOneGroup) {
  const Var tap = MakeVar("tap", 3);
  EXPECT_EQ(Overlapped(MakeSeq({Loop(tap, ProductInto(kSums, kA, kB, VarRef(tap))), MoveOne(kRow, kSums)})),
            absl::StrCat("for tap in 3\n  ", kInto,
                         "sums[0,0]<64,1> += a[tap,0,0]<64,1> * b[tap,0,0]<64,1>\n"
                         "commit products\n"
                         "wait products until 0 pending, completing sums\n"
                         "row[0] = sums[0,0]\n"));
}

TEST(OverlapProductsTest, TheSecondProductRunsOnIntoTheNextTurn) {
  const Var j = MakeVar("j", 8);
  const Expr slot = Mod(VarRef(j), 2);
  const Stmt turn = MakeSeq({MoveOne(kMore, kRow), ProductInto(kMore, kA, kB, slot), MoveOne(kC, kMore),
                             MoveOne(kSums, kRow), ProductInto(kSums, kC, kB, slot)});
  const Stmt body = MakeSeq(
      {std::make_shared<Wait>(slot, FloorDiv(VarRef(j), 2)), InScope(kMore, turn), ArriveOnce(slot + 2)});
  const Stmt code = MakeSeq({Loop(j, body), MoveOne(kRow, kSums)});
  EXPECT_EQ(OverlappedRole(code), R"(for j in 8 unrolled by 4
  wait barrier[j % 2] phase j // 2
  alloc more: f32[64,64] accumulator
  more[0,0] = row[0]
  mma async wgmma.f16 64x64x64: more[0,0]<64,1> += a[j%2,0,0]<64,1> * b[j%2,0,0]<64,1>
  commit products
  wait products until 1 pending, completing sums
  if 0 < j
    let j.before = j - 1
    arrive barrier[j.before % 2 + 2]
  wait products until 0 pending, completing more
  c[0,0,0] = f16(more[0,0])
  sums[0,0] = row[0]
  fence
  mma async wgmma.f16 64x64x64: sums[0,0]<64,1> += c[j%2,0,0]<64,1> * b[j%2,0,0]<64,1>
  commit products
wait products until 0 pending after a loop, completing sums
let j.last = 7
arrive barrier[j.last % 2 + 2]
row[0] = sums[0,0]
)");
}

// The tile that a role stores once has one fence; the tile that another role stores has one for each product.
TEST(OverlapProductsTest, AFenceAfterEachStore) {
  const Var j = MakeVar("j", 8);
  const Stmt product = ProductInto(kSums, kA, kB);
  const auto fences = [](const Stmt& stmt) {
    int count = 0;
    VisitStmts(stmt, [&](const Stmt& s) { return count += s->kind == StmtKind::kFence ? 1 : 0, true; });
    return count;
  };
  const auto in_role = [&](const Stmt& body) { return fences(OverlapProducts(AsOneRole(body))); };
  const Stmt store = MoveOne(kA, kRow);
  EXPECT_EQ(in_role(MakeSeq({store, product, product})), 1);
  EXPECT_EQ(in_role(MakeSeq({store, product, store, product})), 2);
  EXPECT_EQ(in_role(MakeSeq({store, product, Loop(j, product)})), 1);
  EXPECT_EQ(in_role(MakeSeq({store, product, Loop(j, MakeSeq({product, store}))})), 2);
  // Only some turns have this product, or none.
  const Stmt sometimes = std::make_shared<If>(MakeBinary(Op::kLt, VarRef(j), IntConst(2)), product);
  EXPECT_EQ(in_role(MakeSeq({store, Loop(j, sometimes), product})), 2);
  const Stmt roles = std::make_shared<Roles>(
      std::vector<Roles::Role>{{"store", store}, {"compute", MakeSeq({product, product})}},
      std::vector<int>{1});
  EXPECT_EQ(fences(OverlapProducts(roles)), 2);
}

// The inner loop releases a turn later, and so does the outer one, after its own product.
TEST(OverlapProductsTest, EachLoopReleasesWhatIsItsOwn) {
  const Var i = MakeVar("i", 3), k = MakeVar("k", 8);
  const Stmt inner = Loop(k, MakeSeq({ProductInto(kMore, kA, kB), ArriveOnce(IntConst(1))}));
  EXPECT_EQ(OverlappedRole(Loop(i, MakeSeq({inner, ProductInto(kSums, kA, kB), ArriveOnce(IntConst(2))}))),
            R"(for i in 3 unrolled by 4
  wait products until 0 pending, completing sums
  for k in 8 unrolled by 4
    mma async wgmma.f16 64x64x64: more[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>
    commit products
    wait products until 1 pending
    if 0 < k
      let k.before = k - 1
      arrive barrier[1]
  wait products until 0 pending after a loop, completing more
  let k.last = 7
  arrive barrier[1]
  mma async wgmma.f16 64x64x64: sums[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>
  commit products
  wait products until 1 pending
  if 0 < i
    let i.before = i - 1
    arrive barrier[2]
wait products until 0 pending after a loop, completing sums
let i.last = 2
arrive barrier[2]
)");
}

TEST(OverlapProductsTest, LoopsOfUnknownLengthMayHaveNoTurn) {
  const Var from = MakeVar("from", 8), k = MakeVar("k", 64);
  const Expr turns = IntConst(64) - VarRef(from);
  const Stmt loop = std::make_shared<For>(
      k, turns, LoopKind::kSerial,
      MakeSeq({ProductInto(kSums, kA, kB, Mod(VarRef(k), 2)), ArriveOnce(IntConst(2))}));
  EXPECT_EQ(OverlappedRole(loop), R"(let k.turns = 64 - from
for k in k.turns (of 64) unrolled by 2
  mma async wgmma.f16 64x64x64: sums[0,0]<64,1> += a[k%2,0,0]<64,1> * b[k%2,0,0]<64,1>
  commit products
  wait products until 1 pending
  if 0 < k
    let k.before = k - 1
    arrive barrier[2]
wait products until 0 pending after a loop, completing sums
if 0 < k.turns
  let k.last = k.turns - 1
  arrive barrier[2]
)");
}

TEST(OverlapProductsTest, WhereNothingIsReleasedLaterAWaitEndsTheTurn) {
  const std::string product =
      absl::StrCat("  ", kInto, "sums[0,0]<64,1> += a[0,0,0]<64,1> * b[0,0,0]<64,1>\n  commit products\n",
                   "  wait products until 0 pending, completing sums\n");
  const Var k = MakeVar("k", 8), once = MakeVar("once", 1);
  const Stmt releases = MakeSeq({ProductInto(kSums, kA, kB), ArriveOnce(IntConst(0))});
  EXPECT_EQ(OverlappedRole(Loop(once, releases)), "for once in 1\n" + product + "  arrive barrier[0]\n");
  // A branch keeps its products to itself.
  const Stmt branch =
      std::make_shared<If>(MakeBinary(Op::kLt, VarRef(k), IntConst(3)), ProductInto(kSums, kA, kB));
  EXPECT_EQ(Overlapped(branch), "if k < 3\n" + product);
}

TEST(OverlapProductsTest, OtherCodeStaysAsItIs) {
  const Var k = MakeVar("k", 8);
  for (const char* instruction : {"wgmma.e4m3", "mma.f16"}) {
    const Stmt roles = AsOneRole(
        Loop(k, MakeSeq({ProductBy(instruction, kSums, kA, kB, IntConst(0)), ArriveOnce(IntConst(0))})));
    EXPECT_EQ(OverlapProducts(roles), roles) << instruction;
  }
  const Stmt once = OverlapProducts(Before("overlap_products", WarpSpecialized()).body);
  EXPECT_EQ(OverlapProducts(once), once);
}

// The product with c still runs where the tiles a and b are given back.
TEST(OverlapProductsTest, AnArrivalOfTilesWaitsForTheirProducts) {
  const Stmt arrive = std::make_shared<Arrive>(IntConst(2), nullptr, 1, 0, std::vector<Buffer>{kB});
  const Stmt body = MakeSeq({ProductInto(kSums, kA, kB), ProductInto(kMore, kA, kC), arrive});
  EXPECT_THAT(Overlapped(body),
              HasSubstr("commit products\nwait products until 1 pending, completing sums\narrive barrier[2] "
                        "releasing b\nwait products until 0 pending, completing more\n"));
}

}  // namespace
}  // namespace mycc
