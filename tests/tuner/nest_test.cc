// Footprints and strides of the cost model, compared with addresses from running the loops.
#include "tuner/cost/nest.h"

#include <cmath>
#include <functional>
#include <set>

#include "codegen/expr/eval.h"
#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"

namespace mycc {
namespace {

FunctionNest NestOf(const std::string& workload, const std::string& steps,
                    const Target& target = Avx2Target()) {
  return AnalyzeNest(ScheduleOf(workload, steps, target).function());
}

const NestBlock& BlockOf(const FunctionNest& nest, const std::string& name) {
  for (const NestBlock& block : nest.blocks) {
    if (block.block->name == name) return block;
  }
  ADD_FAILURE() << "no block " << name;
  return nest.blocks[0];
}

const NestAccess& AccessOf(const NestBlock& nest, const std::string& buffer) {
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer->name == buffer) return access;
  }
  ADD_FAILURE() << "no access to " << buffer;
  return nest.accesses[0];
}

struct Touched {
  std::set<int64_t> elements, lines, pages;
};

// Collects the elements, lines and pages that `indices` touch while loops from `level` inwards run and the
// others stand at 0, inside the iteration domains.
class Walker : public EvalContext {
 public:
  Walker(const NestBlock& nest, const BufferNode& buffer, const std::vector<Expr>& indices)
      : nest_(nest), buffer_(buffer), indices_(indices) {}

  Touched Walk(size_t level) {
    Touched touched;
    for (const NestLoop& loop : nest_.loops) values_[loop.loop->var.get()] = 0;
    Step(level, &touched);
    return touched;
  }

  int64_t VarValue(const VarNode& var) const override { return values_.at(&var); }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return {}; }

 private:
  void Step(size_t level, Touched* touched) {
    if (level < nest_.loops.size()) {
      for (int64_t i = 0; i < static_cast<int64_t>(nest_.loops[level].extent); ++i) {
        values_[nest_.loops[level].loop->var.get()] = i;
        Step(level + 1, touched);
      }
      return;
    }
    for (const IterVar& iter : nest_.block->iters) {
      const int64_t value = Evaluate(iter.binding, *this).i;
      if (value < 0 || value >= iter.var->extent) return;
      values_[iter.var.get()] = value;
    }
    int64_t flat = 0;
    for (size_t d = 0; d < indices_.size(); ++d)
      flat += Evaluate(indices_[d], *this).i * buffer_.stride(static_cast<int>(d));
    const int64_t address = flat * DTypeBytes(buffer_.dtype);
    touched->elements.insert(flat);
    touched->lines.insert(address / 64);
    touched->pages.insert(address / 4096);
  }

  const NestBlock& nest_;
  const BufferNode& buffer_;
  const std::vector<Expr>& indices_;
  std::unordered_map<const VarNode*, int64_t> values_;
};

// The estimate holds within `slack` for every load of plain form of every block, at every level.
void CheckAgainstBruteForce(const FunctionNest& nest, double slack) {
  for (const NestBlock& block : nest.blocks) {
    Visit(block.block->value, [&](const ExprNode& e) {
      if (e.op != Op::kLoad) return;
      const NestAccess& access = AccessOf(block, e.buffer->name);
      if (access.count > 1) return;  // several points of one buffer are one access
      Walker walker(block, *e.buffer, e.args);
      for (size_t level = 0; level <= block.loops.size(); ++level) {
        const Touched touched = walker.Walk(level);
        const std::string where =
            absl::StrCat(block.block->name, " reads ", e.buffer->name, " from level ", level);
        const auto near = [&](double estimate, double exact, const char* what) {
          EXPECT_LE(estimate, exact * slack + 1) << where << ": " << what;
          EXPECT_GE(estimate, exact / slack - 1) << where << ": " << what;
        };
        near(access.elements[level], static_cast<double>(touched.elements.size()), "elements");
        near(access.line_bytes[level] / kLineBytes, static_cast<double>(touched.lines.size()), "lines");
        near(access.pages[level], static_cast<double>(touched.pages.size()), "pages");
      }
    });
  }
}

TEST(NestTest, FootprintsOfTiledGemm) {
  CheckAgainstBruteForce(NestOf(GemmText(24, 32, 32), TiledGemmSteps(6, 16, 2, 1, false, true)), 1.05);
  CheckAgainstBruteForce(NestOf(GemmText(26, 38, 33), TiledGemmSteps(6, 16, 2, 2, false, false)), 1.6);
}

constexpr char kConv[] = R"(workload conv(x: f32[1,12,14,8], w: const f32[16,8,3,3]) -> (y: f32[1,10,12,16]) {
  y[n,i,j,k] = sum[c:8, r:3, s:3](x[n,i+r,j+s,c] * w[k,c,r,s])
})";

TEST(NestTest, FootprintsOfConvolutionCountTheHaloOnce) {
  CheckAgainstBruteForce(
      NestOf(kConv, "split(t2.a2, [4])\nreorder([t2.a1, t2.a2.0, t2.r1, t2.r2, t2.r0, t2.a2.1, t2.a3])\n"),
      1.35);
}

TEST(NestTest, FootprintsUnderFusedLoops) {
  CheckAgainstBruteForce(NestOf(kConv,
                                "fuse([t2.a1, t2.a2])\nsplit(t2.a1+a2, [12])\nreorder([t2.a1+a2.0, t2.r0, "
                                "t2.r1, t2.r2, t2.a1+a2.1])\n"),
                         1.8);
}

TEST(NestTest, FootprintsOfTransposes) {
  CheckAgainstBruteForce(
      NestOf("workload t(x: f32[64,96]) -> (y: f32[96,64]) { y[i,j] = x[j,i] }",
             "split(t1.a0, [8])\nsplit(t1.a1, [8])\nreorder([t1.a0.0, t1.a1.0, t1.a0.1, t1.a1.1])\n"),
      1.05);
}

TEST(NestTest, GathersTouchALineEach) {
  const FunctionNest nest = NestOf(
      "workload g(x: f32[1000,64], i: i32[10]) -> (y: f32[10,64]) { y[n,j] = x[clamp(i[n], 0, 999), j] }",
      "");
  const NestAccess& access = AccessOf(nest.blocks[0], "t0");
  EXPECT_TRUE(access.gather);
  EXPECT_EQ(access.elements[0], 640);
  EXPECT_EQ(access.elements[1], 64);
}

TEST(NestTest, LoopsAndTile) {
  const FunctionNest nest =
      NestOf(GemmText(48, 64, 32), TiledGemmSteps(6, 16, 2, 2, true, true), Avx2Target(2));
  const NestBlock& block = BlockOf(nest, "t2");
  ASSERT_EQ(block.loops.size(), 7u);
  EXPECT_EQ(block.tile_begin, 5u);
  EXPECT_EQ(block.lane, 6);
  EXPECT_EQ(block.instruction, "fma.f32");
  EXPECT_EQ(block.vectors(Machine(Avx2Target())), 2);
  EXPECT_EQ(block.vectors(Machine(Avx512Target())), 1);
  EXPECT_EQ(block.parallel_iterations(), 4);
  EXPECT_EQ(nest.parallel_regions, 1);
  EXPECT_TRUE(block.loops[4].reduces);
  EXPECT_FALSE(block.loops[4].moves_out);
  EXPECT_TRUE(block.loops[5].moves_out);
  EXPECT_EQ(AccessOf(block, "t1.r").stride[6], 1);  // packed: n % 16 are neighbours
  EXPECT_EQ(AccessOf(block, "t1.r").stride[4], 16);
  EXPECT_EQ(AccessOf(block, "t0").stride[6], 0);
  EXPECT_EQ(block.ops.fused, 1);
  EXPECT_EQ(block.ops.arithmetic(), 2);
}

TEST(NestTest, OperationsLeaveTheLoopsThatDoNotChangeThem) {
  const std::string text =
      "workload r(x: f32[8,64], s: f32[8]) -> (y: f32[8,64]) { y[i,j] = x[i,j] * rsqrt(s[i] / 64.0) }";
  const OpCounts naive = NestOf(text, "").blocks[0].ops;
  EXPECT_EQ(naive.mul, 1);
  EXPECT_DOUBLE_EQ(naive.root, 1.0 / 64);
  EXPECT_DOUBLE_EQ(naive.divide, 1.0 / 64);
  // Inside the loop over rows they run for each element, but once for all lanes and unrolled columns.
  const OpCounts turned = NestOf(text, "reorder([t2.a1, t2.a0])\n").blocks[0].ops;
  EXPECT_EQ(turned.root, 1);
  const OpCounts vectors =
      NestOf(text, "split(t2.a1, [2, 16])\nbind(t2.a1.1, unroll)\nbind(t2.a1.2, vector)\n").blocks[0].ops;
  EXPECT_DOUBLE_EQ(vectors.root, 1.0 / 4);
  EXPECT_EQ(vectors.mul, 1);
}

TEST(NestTest, ConditionsOnIndicesDoNotCount) {
  const auto ops = [](const std::string& value) {
    return NestOf("workload p(x: f32[10]) -> (y: f32[10]) { y[i] = " + value + " }", "").blocks[0].ops;
  };
  const OpCounts padding = ops("select(1 <= i && i < 9, x[i-1] * 2.0, 0.0)");
  EXPECT_EQ(padding.compare_select, 0);
  EXPECT_EQ(padding.mul, 1);  // the arm with more arithmetic
  const OpCounts data = ops("select(x[i] < 0.0, x[i] * 2.0, 0.0)");
  EXPECT_EQ(data.compare_select, 2);
  EXPECT_EQ(data.mul, 1);
}

// Each operation is looked at once, however deep it stands in conditions.
TEST(NestTest, ConditionsOfConditionsCountOnce) {
  constexpr int kDeep = 40;
  std::string value = "x[i]";
  for (int i = 0; i < kDeep; ++i) value = "select(" + value + " < 0.0, x[i], 1.0)";
  const OpCounts ops =
      NestOf("workload p(x: f32[10]) -> (y: f32[10]) { y[i] = " + value + " }", "").blocks[0].ops;
  EXPECT_EQ(ops.compare_select, 2 * kDeep);
}

TEST(NestTest, WeightsArePackedAheadOfTime) {
  const FunctionNest nest = NestOf(GemmText(48, 64, 32), TiledGemmSteps(6, 16, 2, 2, false, true));
  EXPECT_TRUE(BlockOf(nest, "t1.r").ahead_of_time);
  EXPECT_FALSE(BlockOf(nest, "t2").ahead_of_time);
  EXPECT_FALSE(BlockOf(nest, "t2.i").ahead_of_time);
}

TEST(NestTest, ShareOfUsefulInstances) {
  const NestBlock split = NestOf(GemmText(50, 70, 33), "split(t2.a0, [16])\nsplit(t2.r0, [8])\n").blocks[0];
  EXPECT_NEAR(split.useful, (50.0 / 64) * (33.0 / 40), 1e-9);
  const NestBlock twice = NestOf(GemmText(50, 64, 32), "split(t2.a0, [20])\nsplit(t2.a0.1, [8])\n").blocks[0];
  EXPECT_GT(twice.useful, 0.6);
  EXPECT_LT(twice.useful, 0.9);  // 50 of 3 * 24, the guard counted once
  const NestBlock fused = NestOf(kConv, "fuse([t2.a1, t2.a2])\nsplit(t2.a1+a2, [5, 8])\n").blocks[0];
  EXPECT_GT(fused.useful, 0.9);  // all but what reaches past 120
}

TEST(NestTest, PointsOfAStencilAreOneAccess) {
  const FunctionNest nest =
      NestOf("workload s(x: f32[66]) -> (y: f32[64]) { y[i] = x[i] + x[i+1] + x[i+2] }", "");
  ASSERT_EQ(nest.blocks[0].accesses.size(), 2u);
  EXPECT_EQ(AccessOf(nest.blocks[0], "t0").count, 3);
}

}  // namespace
}  // namespace mycc
