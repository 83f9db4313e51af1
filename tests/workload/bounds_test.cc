// Proofs that reads are inside their tensors, on examples and on random stages.
#include "codegen/workload/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "codegen/expr/eval.h"
#include "codegen/expr/print.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

// Whether `y[i,j] = value` is accepted, with i in 0..7, j in 0..2, x of 8 elements and z of 24.
bool Accepts(const std::string& value) {
  const auto workload = ParseWorkload(
      absl::StrCat("workload f(x: f32[8], z: f32[24], m: i32[8], n: i64[8], u: u8[8], t: f32[256], "
                   "p: bool[8]) -> (y: f32[8,3]) { y[i,j] = ",
                   value, " }"),
      "test");
  return workload.ok();
}

TEST(Bounds, RangesOfAxes) {
  EXPECT_TRUE(Accepts("x[i]"));
  EXPECT_TRUE(Accepts("x[7-i]"));
  EXPECT_TRUE(Accepts("z[i*3+j]"));
  EXPECT_TRUE(Accepts("x[(i*3+j)//3]"));
  EXPECT_TRUE(Accepts("x[(i*3+j)%8]"));
  EXPECT_TRUE(Accepts("x[(i+j*3)%8]"));
  EXPECT_TRUE(Accepts("x[i//2+j*2]"));
  EXPECT_FALSE(Accepts("x[i+j]"));
  EXPECT_FALSE(Accepts("z[i*3+j+1]"));
  EXPECT_FALSE(Accepts("x[i-j]"));
}

TEST(Bounds, EachConditionOfAGuardCounts) {
  EXPECT_TRUE(Accepts("select(i + j < 8, x[i+j], 0.0)"));
  EXPECT_TRUE(Accepts("select(j <= i, x[i-j], 0.0)"));
  EXPECT_TRUE(Accepts("select(1 <= i + j && i + j < 9, x[i+j-1], 0.0)"));
  EXPECT_FALSE(Accepts("select(1 <= i + j && i + j < 10, x[i+j-1], 0.0)"));
  EXPECT_FALSE(Accepts("select(i + j < 9, x[i+j-1], 0.0)"));
  EXPECT_TRUE(Accepts("select(3 <= 2*i+j && 2*i+j < 11, x[2*i+j-3], 0.0)"));
}

TEST(Bounds, TheOtherArmKnowsTheContrary) {
  EXPECT_TRUE(Accepts("select(i < 1, 0.0, x[i-1])"));
  EXPECT_TRUE(Accepts("select(i == 0, 0.0, x[i-1])"));
  EXPECT_TRUE(Accepts("select(i != 0, x[i-1], 0.0)"));
  EXPECT_TRUE(Accepts("select(i < 1 || j < 1, 0.0, x[i-j+j-1])"));
  EXPECT_TRUE(Accepts("select(!(i + j > 7), x[i+j], 0.0)"));
  EXPECT_FALSE(Accepts("select(i < 1 && j < 1, 0.0, x[i-1])"));
  EXPECT_TRUE(Accepts("select(i >= 1, select(i <= 6, x[i+1], x[i-1]), x[i+1])"));
}

TEST(Bounds, Alternatives) {
  EXPECT_TRUE(Accepts("select(i == 2 || i == 4, x[i+3], 0.0)"));
  EXPECT_FALSE(Accepts("select(i == 2 || i == 5, x[i+3], 0.0)"));
  EXPECT_TRUE(Accepts("select(i < 2 || i > 5, x[(i+2)%8], 0.0)"));
}

TEST(Bounds, FactsCombine) {
  // i + j >= 4 and j <= 1 give i >= 3.
  EXPECT_TRUE(Accepts("select(i + j >= 4 && j <= 1, x[i-3], 0.0)"));
  EXPECT_FALSE(Accepts("select(i + j >= 4 && j <= 1, x[i-4], 0.0)"));
  EXPECT_TRUE(Accepts("select(2*i <= j, x[7*i], 0.0)"));  // i is 0 or 1
  EXPECT_FALSE(Accepts("select(2*i <= j, x[8*i], 0.0)"));
}

TEST(Bounds, QuotientsUnderConditions) {
  EXPECT_TRUE(Accepts("select((i + j - 1) % 2 == 0 && 1 <= i + j, x[(i+j-1)//2], 0.0)"));
  EXPECT_FALSE(Accepts("select((i + j - 1) % 2 == 0, x[(i+j-1)//2], 0.0)"));
  EXPECT_TRUE(Accepts("select(i // 2 > 0, x[i//2-1], 0.0)"));
}

TEST(Bounds, ClampsAndReflections) {
  EXPECT_TRUE(Accepts("x[clamp(i*5-9, 0, 7)]"));
  EXPECT_TRUE(Accepts("x[max(min(i+j, 7), 0)]"));
  EXPECT_TRUE(Accepts("x[min(max(i-2, 2-i), 7)]"));
  EXPECT_TRUE(Accepts("x[min(max(i+j-2, 2-(i+j)), 14-max(i+j-2, 2-(i+j)))]"));
  EXPECT_FALSE(Accepts("x[max(i-2, 2-i)+3]"));
}

TEST(Bounds, DataIsBoundedByItsTypeOrAClamp) {
  EXPECT_TRUE(Accepts("t[u[i]]"));
  EXPECT_FALSE(Accepts("x[u[i]]"));
  EXPECT_TRUE(Accepts("x[clamp(n[i], 0, 7)]"));
  EXPECT_TRUE(Accepts("x[clamp(n[i], 2, 9)-2]"));
  EXPECT_TRUE(Accepts("z[clamp(i64(m[i]), 0, 7)*3+j]"));
  EXPECT_FALSE(Accepts("select(0 <= m[i] && m[i] < 8, x[m[i]], 0.0)"));
}

TEST(Bounds, ConditionsOnDataProveNothing) {
  EXPECT_FALSE(Accepts("select(p[i], x[i+1], 0.0)"));
  EXPECT_FALSE(Accepts("select(p[i] || i < 7, x[i+1], 0.0)"));
  EXPECT_TRUE(Accepts("select(p[i] && i < 7, x[i+1], 0.0)"));
}

TEST(Bounds, AStageWithoutPointsReadsNothing) {
  EXPECT_TRUE(ParseWorkload("workload f(x: f32[4]) -> (y: f32[0]) { y[i] = x[i+9] }", "t").ok());
  EXPECT_TRUE(ParseWorkload("workload f(x: f32[0]) -> (y: f32[4]) { y[i] = sum[k:0](x[i]) }", "t").ok());
  EXPECT_FALSE(ParseWorkload("workload f(x: f32[4]) -> (y: f32[0]) { y[i] = x[i*i] }", "t").ok());
}

// Fails the test when a read is outside.
class CheckedContext : public EvalContext {
 public:
  CheckedContext(const std::vector<Var>& axes, const std::vector<int64_t>& values, bool* outside)
      : axes_(axes), values_(values), outside_(outside) {}
  int64_t VarValue(const VarNode& var) const override {
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (axes_[k].get() == &var) return values_[k];
    }
    return 0;
  }
  Scalar LoadElement(const BufferNode& buffer, const std::vector<int64_t>& indices) const override {
    for (int d = 0; d < buffer.rank(); ++d) *outside_ |= indices[d] < 0 || indices[d] >= buffer.shape[d];
    return {};
  }

 private:
  const std::vector<Var>& axes_;
  const std::vector<int64_t>& values_;
  bool* outside_;
};

class RandomGuards {
 public:
  explicit RandomGuards(uint64_t seed) : random_(seed) {
    for (int k = 0; k < 3; ++k)
      axes_.push_back(MakeVar(std::string(1, static_cast<char>('i' + k)), 1 + Below(6)));
  }

  Stage Make() {
    Stage stage;
    std::vector<int64_t> shape;
    for (const Var& axis : axes_) shape.push_back(axis->extent);
    stage.output = MakeBuffer("y", DType::kF32, shape);
    stage.axes = axes_;
    const Buffer x = MakeBuffer("x", DType::kF32, {1 + Below(9)});
    const Expr index = Index(2);
    Expr condition = Condition(index, x->shape[0], 2);
    const Expr read = Load(x, {index}), other = FloatConst(0, DType::kF32);
    stage.value = Below(2) == 0 ? MakeSelect(condition, read, other) : MakeSelect(condition, other, read);
    return stage;
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Expr Index(int depth) {
    if (depth == 0) return Below(3) == 0 ? IntConst(Below(9) - 4) : VarRef(axes_[Below(3)]);
    const Expr a = Index(depth - 1);
    switch (Below(8)) {
      case 0: return a * (Below(5) - 2);
      case 1: return FloorDiv(a, 1 + Below(4));
      case 2: return Mod(a, 1 + Below(6));
      case 3: return MakeBinary(Op::kMin, a, Index(depth - 1));
      case 4: return MakeBinary(Op::kMax, a, Index(depth - 1));
      case 5: return a - Index(depth - 1);
      default: return a + Index(depth - 1);
    }
  }

  // Often about the index itself, so that a good part is provable.
  Expr Condition(const Expr& index, int64_t extent, int depth) {
    if (depth > 0 && Below(2) == 0) {
      const Op op = Below(2) == 0 ? Op::kAnd : Op::kOr;
      return MakeBinary(op, Condition(index, extent, depth - 1), Condition(index, extent, depth - 1));
    }
    if (depth > 0 && Below(6) == 0) return MakeUnary(Op::kNot, Condition(index, extent, depth - 1));
    switch (Below(5)) {
      case 0: return MakeBinary(Op::kLe, IntConst(0), index);
      case 1: return MakeBinary(Op::kLt, index, IntConst(extent));
      case 2: return MakeBinary(Below(2) == 0 ? Op::kEq : Op::kNe, Index(1), IntConst(Below(4)));
      default: return MakeBinary(Below(2) == 0 ? Op::kLt : Op::kLe, Index(1), Index(1));
    }
  }

  std::mt19937_64 random_;
  std::vector<Var> axes_;
};

bool ReadsOutside(const Stage& stage) {
  bool outside = false;
  std::vector<int64_t> point(3);
  for (point[0] = 0; point[0] < stage.axes[0]->extent; ++point[0]) {
    for (point[1] = 0; point[1] < stage.axes[1]->extent; ++point[1]) {
      for (point[2] = 0; point[2] < stage.axes[2]->extent; ++point[2]) {
        Evaluate(stage.value, CheckedContext(stage.axes, point, &outside));
      }
    }
  }
  return outside;
}

TEST(Bounds, WhatIsAcceptedNeverReadsOutside) {
  int accepted = 0, safe = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const Stage stage = RandomGuards(seed).Make();
    const bool outside = ReadsOutside(stage), refused = FindBadRead(stage).has_value();
    EXPECT_TRUE(refused || !outside) << seed << ": " << PrintExpr(stage.value) << " with "
                                     << stage.axes[0]->extent << " " << stage.axes[1]->extent << " "
                                     << stage.axes[2]->extent;
    accepted += !refused;
    safe += !outside;
  }
  // The proof is not complete, but it finds most of what is so.
  EXPECT_GT(accepted, safe * 8 / 10) << accepted << " of " << safe;
}

}  // namespace
}  // namespace mycc
