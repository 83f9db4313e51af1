// The words of `mycc explain` about loops.
#include "mycc/loop_origins.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

std::string Explain(const std::string& workload, const std::string& steps) {
  const auto text = ExplainNest(ParseWorkload(workload, "test").value(),
                                ParseTarget("v1 cpu mcpu=haswell l1d=32K l2=256K threads=4").value(),
                                ParseTrace(absl::StrCat("v1\n", steps)).value());
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

constexpr char kDense[] =
    "workload dense(x: f32[8,6], w: f32[6,4]) -> (y: f32[8,4]) {\n"
    "  s[i,j]: f32[8,4] = sum[k:6](x[i,k] * w[k,j])\n  y[n,m] = exp(s[n,m])\n}\n";

TEST(LoopOriginsTest, LoopsOfTheNaiveNestAreAxes) {
  EXPECT_EQ(Explain(kDense, ""), R"(# t0 is x, t1 is w, t2[a0,a1; r0] is s[i,j; k], t3[a0,a1] is y[n,m]
function w(t0: f32[8,6], t1: f32[6,4]) -> (t3: f32[8,4])
  alloc t2: f32[8,4] global
  for t2.a0 in 8      # i of s
    for t2.a1 in 4    # j of s
      for t2.r0 in 6  # k of s
        block t2: t2[a0,a1] += t0[a0,r0] * t1[r0,a1], init
  for t3.a0 in 8      # n of y
    for t3.a1 in 4    # m of y
      block t3: t3[a0,a1] = exp(t2[a0,a1])
)");
}

TEST(LoopOriginsTest, StepsThatMadeAndMarkedALoopStandBehindIt) {
  const std::string text = Explain(kDense,
                                   "split(t3.a0, [2])\nbind(t3.a0.0, parallel)\nbind(t3.a1, vector)\n"
                                   "compute_at(t2, t3.a0.0)\n");
  EXPECT_NE(text.find("parallel t3.a0.0 in 4  # split(t3.a0, [2]), bind(t3.a0.0, parallel)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("for t3.a0.1 in 2     # split(t3.a0, [2])\n"), std::string::npos) << text;
  EXPECT_NE(text.find("vector t3.a1 in 4  # m of y, bind(t3.a1, vector)\n"), std::string::npos) << text;
}

TEST(LoopOriginsTest, StepThatIsNotLegalIsRefused) {
  EXPECT_FALSE(ExplainNest(ParseWorkload(kDense, "test").value(),
                           ParseTarget("v1 cpu mcpu=haswell l1d=32K l2=256K threads=4").value(),
                           ParseTrace("v1\nsplit(t9.a0, [2])\n").value())
                   .ok());
}

}  // namespace
}  // namespace mycc
