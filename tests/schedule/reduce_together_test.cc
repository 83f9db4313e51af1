// reduce_together: goldens of pairs in one pass, the interpreter's word on them, the facts on random parts,
// and refusals in words.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/expr/eval.h"
#include "codegen/schedule/joint_reduction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// t1 = m, t2 = e, t3 = s, t4 = y.
constexpr char kSoftmaxRows[] = R"(workload w(x: f32[5,37]) -> (y: f32[5,37]) {
  m[i]: f32[5] = max[j:37](x[i,j])
  e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
  s[i]: f32[5] = sum[j:37](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";

// t1 = m, t2 = s, t3 = y.
constexpr char kLogSumExp[] = R"(workload w(x: f32[5,37]) -> (y: f32[5]) {
  m[i]: f32[5] = max[j:37](x[i,j] * 0.25)
  s[i]: f32[5] = sum[j:37](exp(x[i,j] * 0.25 - m[i]))
  y[i] = m[i] + log(s[i])
})";

// t3 = s, t4 = d, t5 = v, t6 = y.
constexpr char kNorm[] = R"(workload w(x: f32[5,37], g: const f32[37], b: const f32[37]) -> (y: f32[5,37]) {
  s[i]: f32[5] = sum[j:37](x[i,j])
  d[i,j]: f32[5,37] = x[i,j] - s[i] / 37.0
  v[i]: f32[5] = sum[j:37](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 37.0 + 0.00001) * g[j] + b[j]
})";

void Check(const std::string& name, const std::string& workload, const std::string& steps,
           const Target& target = TestTarget()) {
  const absl::Status status = CheckTrace(workload, steps, 1e-5, target);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(MatchesGolden("schedule/" + name, ScheduledText(workload, steps, target)));
}

TEST(ReduceTogetherTest, TheStatisticsOfASoftmax) {
  Check("together_softmax", kSoftmaxRows, "reduce_together(t1, t3)\ninline(t2)\n");
}

// Nothing else reads the exponentials.
TEST(ReduceTogetherTest, LogSumExpInLanes) {
  Check("together_log_sum_exp", kLogSumExp,
        "reduce_together(t1, t2)\nrfactor(t2.r0, 8)\ncompute_at(t2, t3.a0)\ncompute_at(t2.rf, t3.a0)\n"
        "bind(t2.rf.v, vector)\n");
}

TEST(ReduceTogetherTest, MeanAndVarianceInRuns) {
  Check("together_norm", kNorm, "reduce_together(t3, t5)\nrfactor_runs(t5.r0, 10)\n");
}

TEST(ReduceTogetherTest, ThreadsMergeTuples) {
  Check("together_threads", kNorm,
        "reduce_together(t3, t5)\nsplit(t5.r0, [8])\nbind(t5.a0, block)\nreorder([t5.r0.1, t5.r0.0])\n"
        "bind(t5.r0.1, thread)\n",
        TestGpu());
}

// A mean as a stage of its own, a product with 1/n, two axes, a power, a difference the other way round.
TEST(ReduceTogetherTest, FormsThatAreEqual) {
  for (const std::string difference : {"(x[i,j,k] - a[i])", "(a[i] - x[i,j,k])"}) {
    for (const std::string& square :
         {absl::StrCat(difference, " * ", difference), absl::StrCat("pow(", difference, ", 2.0)")}) {
      const std::string text = absl::StrCat(R"(workload w(x: f64[3,8,4]) -> (v: f64[3]) {
  s[i]: f64[3] = sum[j:8, k:4](x[i,j,k])
  a[i]: f64[3] = s[i] * 0.03125
  v[i] = sum[j:8, k:4]()",
                                            square, ")\n}");
      const absl::Status status = CheckTrace(text, "reduce_together(t1, t3)\n");
      EXPECT_TRUE(status.ok()) << text << status.message();
    }
  }
  const std::string minimum = R"(workload w(x: f32[5,37]) -> (y: f32[5]) {
  m[i]: f32[5] = min[j:37](x[i,j])
  s[i]: f32[5] = sum[j:37](exp((m[i] - x[i,j]) * 2.0))
  y[i] = log(s[i]) - m[i]
})";
  const absl::Status status = CheckTrace(minimum, "reduce_together(t1, t2)\nrfactor(t2.r0, 4)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

// Each stage reads the one before it several times; whether they depend on the maximum is asked once for
// each.
TEST(ReduceTogetherTest, LongChainsBeforeThePair) {
  std::string text = "workload w(x: f32[4,24]) -> (y: f32[4]) {\n";
  std::string before = "x";
  for (int s = 0; s < 60; ++s) {
    const std::string stage = absl::StrCat("q", s);
    absl::StrAppend(&text, "  ", stage, "[i,j]: f32[4,24] = max[r:2](", before, "[i,max(j-r,0)] * ", before,
                    "[i,min(j+r,23)])\n");
    before = stage;
  }
  absl::StrAppend(&text, "  m[i]: f32[4] = max[j:24](", before, "[i,j])\n  y[i] = sum[j:24](exp(", before,
                  "[i,j] - m[i]))\n}");
  EXPECT_THAT(ScheduledText(text, "reduce_together(t61, t62)\n"), HasSubstr("sum_exp_max="));
}

TEST(ReduceTogetherTest, RefusesInWords) {
  const auto pair = [](const std::string& first, const std::string& second) {
    return ScheduledText(
        absl::StrCat("workload w(x: f32[4,24], z: f32[4,24]) -> (y: f32[4]) {\n  m[i]: f32[4] = ", first,
                     "\n  y[i] = ", second, "\n}"),
        "reduce_together(t2, t3)");
  };
  EXPECT_THAT(pair("max[j:24](x[i,j])", "sum[j:24](tanh(x[i,j] - m[i]))"),
              HasSubstr("there is no known fact about sums of tanh(t0[a0,r0] - t2[a0])"));
  EXPECT_THAT(pair("max[j:24](x[i,j])", "sum[j:24](exp(z[i,j] - m[i]))"),
              HasSubstr("is not that of t0[a0,r0], which t2 is made of"));
  EXPECT_THAT(pair("max[j:24](x[i,j])", "sum[j:24](exp(m[i] - x[i,j]))"), HasSubstr("t2 is no minimum"));
  EXPECT_THAT(pair("sum[j:24](x[i,j])", "sum[j:24]((x[i,j] - m[i] / 23.0) * (x[i,j] - m[i] / 23.0))"),
              HasSubstr("is not t2 / 24, the mean"));
  EXPECT_THAT(pair("sum[j:24](x[i,j])", "sum[j:24]((x[i,j] - m[i] / 24.00001) * (x[i,j] - m[i] / 24.00001))"),
              HasSubstr("is not t2 / 24, the mean"));
  EXPECT_THAT(pair("max[j:24](x[i,j])", "sum[j:24](exp(x[i,j] - select(m[i] == inf, 0.0, m[i])))"),
              HasSubstr("a number stands for t2 at the infinity that is no identity of max"));
  EXPECT_THAT(pair("sum[j:24](z[i,j])", "sum[j:24]((x[i,j] - m[i] / 24.0) * (x[i,j] - m[i] / 24.0))"),
              HasSubstr("t0[a0,r0] is not t1[a0,r0], which t2 is the sum of"));
  EXPECT_THAT(pair("max[j:24](x[i,j])", "max[j:24](x[i,j] - m[i])"),
              HasSubstr("expected a reduction to one value, and a sum"));
  EXPECT_THAT(pair("max[j:20](x[i,j])", "sum[j:24](exp(x[i,j] - m[i]))"),
              HasSubstr("they run over different axes"));
  EXPECT_THAT(ScheduledText(kSoftmaxRows, "reduce_together(t3, t1)"), HasSubstr("t3"));
  EXPECT_THAT(ScheduledText(kSoftmaxRows, "reduce_together(t1, t3)\nreduce_together(t1, t3)"),
              HasSubstr("t1"));
  EXPECT_THAT(ScheduledText(kSoftmaxRows, "split(t3.r0, [4])\nreduce_together(t1, t3)"),
              HasSubstr("has been scheduled already"));
  EXPECT_THAT(ScheduledText(kSoftmaxRows, "reduce_together(t1, t3)\ncache_write(t3, t3.a0)"),
              HasSubstr("t3 reduces tuples, which have accumulators of their own already"));
}

class NoOthers : public EvalContext {
  int64_t VarValue(const VarNode&) const override { return 0; }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return {}; }
};

// Merges constants.
std::vector<Expr> MergedParts(const Reduction& reduction, const std::vector<Expr>& a,
                              const std::vector<Expr>& b) {
  std::vector<Expr> merged;
  for (int i = 0; i < reduction.arity(); ++i)
    merged.push_back(FloatConst(Evaluate(reduction.Combined(i, a, b), NoOthers()).f, DType::kF64));
  return merged;
}

// The statistics of random rows, merged in random groupings, and what the definitions say.
TEST(JointFactsTest, HoldForRandomPartsInAnyGrouping) {
  const Buffer result = MakeBuffer("t", DType::kF64, {}), x = MakeBuffer("x", DType::kF64, {});
  const Expr f = Load(x, {}), t = Load(result, {});
  std::mt19937 random(11);
  std::normal_distribution<double> numbers(3, 5);
  for (int round = 0; round < 60; ++round) {
    const int n = 1 + static_cast<int>(random() % 9);
    const double count = n;
    const Expr deviation = f - MakeBinary(Op::kDiv, t, FloatConst(count, DType::kF64));
    const auto moments = JoinReductions(ReduceOp::kSum, result, f, deviation * deviation, n);
    const auto sums = JoinReductions(ReduceOp::kMax, result, f,
                                     MakeUnary(Op::kExp, (f - t) * FloatConst(0.5, DType::kF64)), n);
    ASSERT_TRUE(moments.ok()) << moments.status();
    ASSERT_TRUE(sums.ok()) << sums.status();
    std::vector<double> row;
    for (int i = 0; i < n; ++i) row.push_back(numbers(random));
    double total = 0, largest = row[0], squares = 0, exponentials = 0;
    for (const double value : row) {
      total += value;
      largest = std::max(largest, value);
    }
    for (const double value : row) {
      squares += (value - total / count) * (value - total / count);
      exponentials += std::exp(0.5 * (value - largest));
    }
    const std::pair<const JointReduction*, std::vector<double>> facts[] = {
        {&*moments, {squares, total, count}}, {&*sums, {exponentials, largest}}};
    for (const auto& [joint, expected] : facts) {
      ASSERT_TRUE(CheckReduction(joint->reduce).ok()) << CheckReduction(joint->reduce);
      std::vector<std::vector<Expr>> parts;
      for (const double value : row) {
        std::vector<Expr> term, identity;
        for (int p = 0; p < joint->reduce.arity(); ++p) {
          term.push_back(Rewrite(joint->values[p], [&](const Expr& e) -> Expr {
            return e->op == Op::kLoad ? FloatConst(value, DType::kF64) : nullptr;
          }));
          identity.push_back(joint->reduce.Identity(p, DType::kF64));
        }
        parts.push_back(MergedParts(joint->reduce, identity, term));
      }
      while (parts.size() > 1) {
        const size_t a = random() % parts.size();
        size_t b = random() % (parts.size() - 1);
        if (b >= a) ++b;
        parts[a] = MergedParts(joint->reduce, parts[a], parts[b]);
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(b));
      }
      for (size_t p = 0; p < expected.size(); ++p) {
        EXPECT_NEAR(parts[0][p]->value.f, expected[p], 1e-9 * (1 + std::fabs(expected[p])))
            << joint->reduce.name() << " part " << p << " of " << n;
      }
    }
  }
}

// Infinite terms add nothing where the extremum is finite.
TEST(JointFactsTest, MaskedTermsAddNothing) {
  const Buffer result = MakeBuffer("t", DType::kF64, {}), x = MakeBuffer("x", DType::kF64, {});
  const Expr f = Load(x, {});
  const auto sums = JoinReductions(ReduceOp::kMax, result, f, MakeUnary(Op::kExp, f - Load(result, {})), 4);
  ASSERT_TRUE(sums.ok()) << sums.status();
  const auto number = [](double value) { return FloatConst(value, DType::kF64); };
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<Expr> all = {sums->reduce.Identity(0, DType::kF64), sums->reduce.Identity(1, DType::kF64)};
  for (const double value : {-infinity, 2.0, -infinity, 3.0})
    all = MergedParts(sums->reduce, all, {number(1), number(value)});
  EXPECT_NEAR(all[0]->value.f, 1 + std::exp(-1.0), 1e-12);
  EXPECT_EQ(all[1]->value.f, 3);
}

}  // namespace
}  // namespace mycc
