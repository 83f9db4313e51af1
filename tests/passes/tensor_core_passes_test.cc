// The passes of tensor cores: goldens of what they make of a product together, the interpreter's word that
// each keeps its meaning, and what tiles and fragments are made of or refused.
#include <set>

#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/fragments.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/ir/nest.h"
#include "tests/passes/tensor_core_product.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

void Check(const std::string& golden, const std::string& steps) {
  const absl::StatusOr<LoweredFunction> lowered = Lower(Scheduled(steps), TestGpu());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(MatchesGolden("passes/" + golden, PrintLowered(*lowered)));
  const absl::Status same = Meaning(WholeFunction(*lowered));
  EXPECT_TRUE(same.ok()) << same.message();
}

TEST(TensorCoreLowering, AWarpOfItsOwnCopies) { Check("wgmma_warp_specialized", WarpSpecialized()); }
TEST(TensorCoreLowering, GroupsOfWarpsTakeTurns) { Check("wgmma_pingpong", PingPong()); }
TEST(TensorCoreLowering, BlocksOfAClusterShareTiles) { Check("wgmma_multicast", InClusters()); }
TEST(TensorCoreLowering, BlocksShareATileOutBySteps) { Check("wgmma_stream_k", StreamK()); }
TEST(TensorCoreLowering, AllThreadsCopy) { Check("mma_multistage", Multistage()); }

// The taps of a convolution share a tile of pixels, and its weights are fetched once. With few channels the
// taps of a row are the depth of a product. The reaches of taps overlap in memory.
constexpr char kConv[] = R"(workload c(x: f16[2,18,19,16], w: f16[24,3,4,16]) -> (y: f16[2,16,16,24]) {
  s[n,i,j,k]: f32[2,16,16,24] = sum[r:3, s:4, c:16](f32(x[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(s[n,i,j,k])
})";
// A tile of `rows` x `columns` pixels.
absl::StatusOr<LoweredFunction> LoweredWindow(int rows, int columns) {
  const absl::StatusOr<Trace> trace = ParseTrace(absl::Substitute(R"(v1
split(t2.a0, [1])
split(t2.a1, [$0])
split(t2.a2, [$1])
split(t2.a3, [24])
split(t2.r2, [16])
reorder([t2.a0.0, t2.a1.0, t2.a2.0, t2.a3.0, t2.r2.0, t2.r0, t2.a1.1, t2.a0.1, t2.a2.1, t2.a3.1, t2.r1, t2.r2.1])
fuse([t2.r1, t2.r2.1])
fuse([t2.a0.0, t2.a1.0, t2.a2.0, t2.a3.0])
bind(t2.a0.0+a1.0+a2.0+a3.0, block)
persist(t2.a0.0+a1.0+a2.0+a3.0, 3)
cache_write(t2, t2.a0.0+a1.0+a2.0+a3.0)
reverse_inline(t3)
stage_window(t2, t0, t2.r2.0, shared, t2.r0)
stage_shared(t2, t1, t2.a0.0+a1.0+a2.0+a3.0, shared)
layout(t0.s, 0, 128)
layout(t1.s, 0, 128)
bind(t2.r0, unroll)
tensorize_tile(t2.a1.1, wgmma.f16, 1, 1)
pipeline(t2.r2.0, bulk, 2)
)",
                                                                  rows, columns));
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<Schedule> schedule = Replay(CanonicalWorkload(kConv), TestGpu(), *trace);
  if (!schedule.ok()) return schedule.status();
  return Lower(schedule->function(), TestGpu());
}
TEST(TensorCoreLowering, TapsShareATile) {
  const absl::StatusOr<LoweredFunction> lowered = LoweredWindow(8, 8);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(MatchesGolden("passes/wgmma_window", PrintLowered(*lowered)));
  const absl::Status same = CheckFunction(CanonicalWorkload(kConv), WholeFunction(*lowered), kTolerance);
  EXPECT_TRUE(same.ok()) << same.message();
  // A tap shifts by 4 rows, where the swizzle repeats after 8.
  EXPECT_THAT(LoweredWindow(16, 4).status().message(), HasSubstr("wgmma.f16 reads t0.s from row "));
}

// Weights for all tiles whose last panel has zeros after it: the copy engine cannot fetch them, and no other
// thread would.
TEST(TensorCoreLowering, WhatOneThreadWouldFillIsRefused) {
  const std::string in_ring = "stage_shared(t3, t1, t3.r0.0, shared)";
  const absl::StatusOr<LoweredFunction> lowered =
      Lower(Scheduled(absl::StrReplaceAll(WarpSpecialized(),
                                          {{in_ring, "stage_shared(t3, t1, t3.a0.0+a1.0, shared)"}})),
            TestGpu());
  EXPECT_THAT(lowered.status().message(),
              HasSubstr("one thread would fill t1.s: the copy engine cannot do this copy: the condition "));
}

TEST(TensorCorePasses, EachKeepsTheMeaning) {
  for (const std::string& steps : {WarpSpecialized(), Multistage(), PingPong()}) {
    Function function = Before("tensorize_tiles", steps);
    for (const auto& [name, run] : kTilePasses) {
      const auto after = run(function.body);
      ASSERT_TRUE(after.ok()) << name << ": " << after.status();
      // Products of warps are not asynchronous.
      const bool is_idle = steps == Multistage() && std::string(name) == "overlap_products";
      EXPECT_EQ(*after == function.body, is_idle) << name;
      function.body = *after;
      const absl::Status verified = VerifyFunction(function);
      EXPECT_TRUE(verified.ok()) << name << ": " << verified.message();
      const absl::Status same = Meaning(function);
      EXPECT_TRUE(same.ok()) << name << ": " << same.message();
    }
  }
}

TEST(TensorCorePasses, HaveNothingToDoTwice) {
  Function function = Before("tensorize_tiles", WarpSpecialized());
  for (const TilePass run : {TensorizeTiles, PipelineLoops}) {
    function.body = run(function.body).value();
    EXPECT_EQ(run(function.body).value(), function.body);
  }
  // The nests over an accumulator are loops of threads and registers afterwards, which are nobody's to
  // divide.
  function.body = FragmentLoopsOf(function.body, TestGpu()).value();
  EXPECT_THAT(FragmentLoopsOf(function.body, TestGpu()).status().message(),
              HasSubstr("t3.acc: it is used outside of a nest of loops over the whole tile"));
}

// acc[row, column] += f32(x[..]) * f32(y[..]) in loops i, j, k that are marked with mma.f16.
struct Product {
  const Var i = MakeVar("i", 16), j = MakeVar("j", 8), k = MakeVar("k", 16);
  const Buffer acc = MakeBuffer("acc", DType::kF32, {32, 32}, Scope::kAccumulator);
  const Buffer x = MakeBuffer("x", DType::kF16, {64, 64}, Scope::kShared);
  const Buffer y = MakeBuffer("y", DType::kF16, {64, 64}, Scope::kShared);
  std::vector<Expr> of_acc = {VarRef(i), VarRef(j)}, of_x = {VarRef(i), VarRef(k)},
                    of_y = {VarRef(j), VarRef(k)};
  Op combine = Op::kAdd;
  Expr depth = IntConst(16);

  Stmt Build() const {
    const Expr product = MakeCast(DType::kF32, Load(x, of_x)) * MakeCast(DType::kF32, Load(y, of_y));
    Stmt body = Put(acc, of_acc, MakeBinary(combine, Load(acc, of_acc), product));
    body = std::make_shared<For>(k, depth, LoopKind::kSerial, body);
    return For(i, IntConst(16), LoopKind::kSerial, Loop(j, body))
        .Marked({.instruction = "mma.f16", .warps = {1, 1}});
  }
  std::string Refusal() const { return std::string(TensorizeTiles(Build()).status().message()); }
};

TEST(TensorizeTilesTest, ANestBecomesOneStatement) {
  const absl::StatusOr<Stmt> mma = TensorizeTiles(Product().Build());
  ASSERT_TRUE(mma.ok()) << mma.status();
  EXPECT_EQ(PrintStmt(*mma), "mma mma.f16 16x8x16: acc[0,0]<32,1> += x[0,0]<64,1> * y[0,0]<1,64>\n");
}

// The operands change sides with the columns.
TEST(TensorizeTilesTest, ColumnsAreWhatIsContiguousInTheAccumulator) {
  Product across;
  across.of_acc = {VarRef(across.j), VarRef(across.i)};
  const absl::StatusOr<Stmt> tensorized = TensorizeTiles(across.Build());
  ASSERT_TRUE(tensorized.ok()) << tensorized.status();
  const Mma& mma = As<Mma>(*tensorized);
  EXPECT_EQ(mma.m, 8);
  EXPECT_EQ(mma.n, 16);
  EXPECT_EQ(mma.a.buffer, across.y);
  EXPECT_EQ(mma.b.buffer, across.x);
}

TEST(TensorizeTilesTest, LoopsWithoutTheMarkStayAsTheyAre) {
  const Stmt marked = Product().Build();
  const Stmt plain = As<For>(marked).body;
  EXPECT_EQ(TensorizeTiles(plain).value(), plain);
}

TEST(TensorizeTilesTest, WhatIsNoTileIsRefused) {
  Product maximum;
  maximum.combine = Op::kMax;
  EXPECT_EQ(maximum.Refusal(), "loop i cannot be tensorized: it is not a nest around a sum of products");
  Product crooked;
  crooked.of_x = {Mod(VarRef(crooked.i), 8), VarRef(crooked.k)};
  EXPECT_EQ(crooked.Refusal(), "loop i cannot be tensorized: loop i does not step evenly");
  Product both;
  both.of_y = {VarRef(both.j) + VarRef(both.i), VarRef(both.k)};
  EXPECT_EQ(both.Refusal(), "loop i cannot be tensorized: loop i steps through both operands");
  Product open;
  open.depth = VarRef(MakeVar("n", 16));
  EXPECT_EQ(open.Refusal(), "loop i cannot be tensorized: loop k has no constant extent");
}

// Rows that two loops run along step as one loop, or are refused.
TEST(TensorizeTilesTest, RowsOfTwoLoopsStepAsOne) {
  const auto rows = [](int64_t step) {
    const Product product;
    const Var outer = MakeVar("o", 2);
    VarMap further;
    further[product.i.get()] = VarRef(outer) * step + VarRef(product.i);
    const Stmt nest = product.Build();
    const Stmt body = SubstituteVars(As<For>(nest).Marked({}), further);
    return TensorizeTiles(As<For>(nest).With({.var = outer, .extent = IntConst(2), .body = body}));
  };
  const absl::StatusOr<Stmt> whole = rows(16);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(As<Mma>(*whole).m, 32);
  EXPECT_EQ(rows(12).status().message(),
            "loop o cannot be tensorized: its loops along rows, columns or depth do not step as one loop");
}

TEST(TensorizeTilesTest, AViewThatIsOffIsSeen) {
  Function function = Before("pipeline_loops", Multistage());
  const auto shifted = [&](auto change) {
    Function broken = function;
    broken.body = RewriteStmts(function.body, [&](const Stmt& stmt) -> Stmt {
      const Mma* mma = DynAs<Mma>(stmt);
      if (mma == nullptr) return nullptr;
      auto copy = std::make_shared<Mma>(mma->instruction, mma->m, mma->n, mma->k, mma->acc, mma->a, mma->b,
                                        mma->warps);
      change(copy.get());
      return copy;
    });
    return Meaning(broken);
  };
  EXPECT_TRUE(shifted([](Mma*) {}).ok());
  EXPECT_FALSE(shifted([](Mma* mma) { --mma->k; }).ok());
  EXPECT_FALSE(shifted([](Mma* mma) { --mma->m; }).ok());
  EXPECT_FALSE(shifted([](Mma* mma) { std::swap(mma->b.row_stride, mma->b.col_stride); }).ok());
  EXPECT_FALSE(shifted([](Mma* mma) { mma->a.row_stride -= 1; }).ok());
}

// Thread and register of an element, as the PTX ISA has them for the accumulators of mma.m16n8 and wgmma.
struct Place {
  int64_t thread, value;
  auto operator<=>(const Place&) const = default;
};
Place PlaceByTheManual(int64_t row, int64_t column, bool warpgroup) {
  const int64_t warp = warpgroup ? row % 64 / 16 : 0;
  return {warp * 32 + row % 8 * 4 + column % 8 / 2, column / 8 * 4 + row % 16 / 8 * 2 + column % 2};
}

// The elements that a layout's loops give to each thread, which are all elements, each to one.
TEST(FragmentLoopsTest, ElementsAreWhereTheManualHasThem) {
  for (const bool warpgroup : {false, true}) {
    const FragmentLayout layout{warpgroup ? 64 : 16,
                                24,
                                {1, 1},
                                InstructionNamed(warpgroup ? "wgmma.f16" : "mma.f16")->sums.fragment};
    const FragmentLoops fragment = MakeFragmentLoops(layout, "f");
    const Buffer tile = MakeBuffer("tile", DType::kI32, {layout.rows, layout.columns});
    Expr thread = IntConst(0);
    for (const auto& [var, kind] : fragment.loops) {
      if (kind == LoopKind::kThread) thread = thread * var->extent + VarRef(var);
    }
    const Stmt body =
        MakeNest(fragment.loops, Put(tile, {fragment.row, fragment.column}, MakeCast(DType::kI32, thread)));
    const auto run = RunFunction(MakeFunction({}, {tile}, body), {});
    ASSERT_TRUE(run.ok()) << run.status();
    std::set<Place> places;
    for (int64_t row = 0; row < layout.rows; ++row) {
      for (int64_t column = 0; column < layout.columns; ++column) {
        const Place place = PlaceByTheManual(row, column, warpgroup);
        EXPECT_EQ((*run)[0].Get(row * layout.columns + column).i, place.thread) << row << " " << column;
        places.insert(place);
      }
    }
    EXPECT_EQ(places.size(), static_cast<size_t>(layout.rows * layout.columns)) << "two in one register";
  }
}

TEST(FragmentLoopsTest, AnElementLeftOutIsSeen) {
  const Function function = Lowered(Multistage()).value();
  int loops = 0;
  for (const LoopKind kind : {LoopKind::kThread, LoopKind::kUnroll, LoopKind::kVector}) {
    Function broken = function;
    broken.body = RewriteStmts(function.body, [&](const Stmt& stmt) -> Stmt {
      const For* loop = DynAs<For>(stmt);
      if (loop == nullptr || loop->loop_kind != kind || loop->var->extent == 1) return nullptr;
      ++loops;
      return loop->With({.extent = IntConst(loop->var->extent - 1)});
    });
    EXPECT_FALSE(Meaning(broken).ok()) << LoopKindName(kind);
  }
  EXPECT_GE(loops, 6);
}

TEST(FragmentLoopsTest, WhatThreadsCannotHoldIsRefused) {
  const auto refusal = [](const std::string& steps, auto change) {
    const Function function = Before("fragment_loops", steps);
    const Stmt body = RewriteStmts(function.body, change);
    EXPECT_NE(body, function.body) << "nothing to break";
    return std::string(FragmentLoopsOf(body, TestGpu()).status().message());
  };
  EXPECT_THAT(refusal(Multistage(),
                      [](const Stmt& stmt) -> Stmt {
                        const Mma* mma = DynAs<Mma>(stmt);
                        if (mma == nullptr) return nullptr;
                        return std::make_shared<Mma>(mma->instruction, mma->m - 8, mma->n, mma->k, mma->acc,
                                                     mma->a, mma->b, mma->warps);
                      }),
              HasSubstr("a tile of 24x16x16; expected rows in 32s, columns in 16s"));
  // One element by itself, which only one thread would have.
  EXPECT_EQ(refusal(Multistage(),
                    [](const Stmt& stmt) -> Stmt {
                      const Mma* mma = DynAs<Mma>(stmt);
                      if (mma == nullptr) return nullptr;
                      return MakeSeq({stmt, Put(mma->acc.buffer, {IntConst(0), IntConst(0)}, F32(0))});
                    }),
            "the accumulator t3.acc: it is used outside of a nest of loops over the whole tile");
}

}  // namespace
}  // namespace mycc
