// The naive loop nest of a workload: its text, its validity and its meaning.
#include <gtest/gtest.h>

#include "codegen/ir/interpreter.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

struct Case {
  const char* name;
  const char* text;
};

// One for each shape of stage that the naive nest treats in its own way.
constexpr Case kCases[] = {
    {"naive_gemm",
     "workload gemm(x: f32[4,6], w: const f32[6,5]) -> (y: f32[4,5]) { y[i,j] = sum[k:6](x[i,k] * w[k,j]) }"},
    {"naive_conv2d_relu",
     "workload conv(x: f32[1,3,6,6], w: const f32[2,3,3,3], b: const f32[2]) -> (y: f32[1,2,6,6]) {\n"
     "  p[n,c,i,j]: f32[1,3,8,8] = select(1 <= i && i < 7 && 1 <= j && j < 7, x[n,c,i-1,j-1], 0.0)\n"
     "  a[n,k,i,j]: f32[1,2,6,6] = sum[c:3, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])\n"
     "  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)\n}"},
    {"naive_softmax",
     "workload softmax(x: f32[3,7]) -> (y: f32[3,7]) {\n"
     "  m[i]: f32[3] = max[k:7](x[i,k])\n  e[i,j]: f32[3,7] = exp(x[i,j] - m[i])\n"
     "  s[i]: f32[3] = sum[k:7](e[i,k])\n  y[i,j] = e[i,j] / s[i]\n}"},
    {"naive_argmax", "workload top(x: f32[3,9]) -> (y: i32[3]) { y[i] = argmax[k:9](x[i,k]) }"},
    {"naive_argmin_int", "workload low(x: i8[5,4]) -> (y: i32[5]) { y[i] = argmin[k:4](x[i,k]) }"},
    {"naive_rank0",
     "workload total(x: f32[8]) -> (y: f32[]) {\n  s[]: f32[] = sum[k:8](x[k])\n  y[] = sqrt(abs(s[]))\n}"},
    {"naive_int_prod", "workload product(x: i32[2,3]) -> (y: i32[2]) { y[i] = prod[k:3](x[i,k]) }"},
    {"naive_gather",
     "workload gather(t: f32[10,3], idx: i32[4]) -> (y: f32[4,3]) { y[i,j] = t[clamp(i64(idx[i]), 0, 9), j] "
     "}"},
    {"naive_empty", "workload empty(x: f32[0,4]) -> (y: f32[0,4]) { y[i,j] = x[i,j] + 1.0 }"},
    {"naive_empty_sum",
     "workload sums(x: f32[3,0]) -> (s: f32[3], m: f32[3]) {\n  s[i] = sum[k:0](x[i,k])\n  m[i] = "
     "max[k:0](x[i,k])\n}"},
    {"naive_half", "workload half(x: f16[3,5], w: f16[5]) -> (y: f16[3]) { y[i] = sum[k:5](x[i,k] * w[k]) }"},
};

class BuildNaiveTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto parsed = ParseWorkload(GetParam().text, "test");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    workload_ = Canonicalize(*parsed);
    function_ = BuildNaive(workload_);
  }
  Workload workload_;
  Function function_;
};

TEST_P(BuildNaiveTest, PrintsAsItsGolden) {
  EXPECT_TRUE(MatchesGolden(std::string("ir/") + GetParam().name, PrintFunction(function_)));
}

TEST_P(BuildNaiveTest, PassesTheVerifier) {
  const absl::Status status = VerifyFunction(function_);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(BuildNaiveTest, InterpretsAsTheReference) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<NDArray> inputs = RandomInputs(workload_, seed);
    const auto want = RunReference(workload_, inputs);
    const auto got = RunFunction(function_, inputs, seed);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ((*got)[i].dtype, (*want)[i].dtype);
      EXPECT_EQ((*got)[i].shape, (*want)[i].shape);
      EXPECT_EQ((*got)[i].bytes, (*want)[i].bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, BuildNaiveTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BuildNaiveTest, LoopsAndBlocksAreNamedAfterTensorAndAxis) {
  const auto parsed = ParseWorkload(kCases[0].text, "test");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Workload workload = Canonicalize(*parsed);
  std::vector<std::string> loops;
  VisitStmts(BuildNaive(workload).body, [&](const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) loops.push_back(loop->var->name);
    if (const Block* block = DynAs<Block>(stmt)) {
      EXPECT_EQ(block->name, "t2");
      EXPECT_EQ(block->iters[2].var, workload.stages[0].reduce_axes[0]);
      EXPECT_TRUE(block->iters[2].reduce && block->init);
    }
    return true;
  });
  EXPECT_EQ(loops, (std::vector<std::string>{"t2.a0", "t2.a1", "t2.r0"}));
}

}  // namespace
}  // namespace mycc
