// Forms of the scores of attention: for each, the default schedule of a GPU is one pass over the keys, and
// lowered code computes what the stages say.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/target/target.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/lowered_point.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

struct ScoreForm {
  const char *name, *inputs, *value;  // Q and K are numbers of queries and of keys, S is the scaled product
};

constexpr ScoreForm kForms[] = {
    {"OfKeys", "r: f32[1,K]", "S + r[b,j]"},
    {"MaskOfKeys", "r: bool[1,K]", "select(r[b,j] || j == 0, S, -inf)"},
    {"AlongDiagonals", "r: f32[2,N]", "S + r[h,j-i+Q-1]"},
    {"OfPairs", "r: f16[Q,K]", "S + f32(r[i,j])"},
    {"OfPairsAndHeads", "r: f16[2,Q,K]", "S + f32(r[h,i,j])"},
    {"OfPairsHeadsAndBatches", "r: f16[1,2,Q,K]", "S + f32(r[b,h,i,j])"},
    {"MaskOfPairs", "r: bool[1,Q,K]", "select(r[b,i,j] || j == 0, S, -inf)"},
    {"OfPairsAcross", "r: f16[K,Q]", "S + f32(r[j,i])"},
    {"OfTwoKeysEach", "r: f16[Q,K]", "S + f32(r[i,j//2])"},
    {"OfTwoQueriesEach", "r: f16[Q,K]", "S + f32(r[i//2,j])"},
    {"MaskOfBlocks", "r: bool[Q,K]", "select(r[i//16,j//16] || j == 0, S, -inf)"},
    {"OfLaterKeys", "r: f32[Q,N]", "S + r[i,j+1]"},
    {"OfPairsAndOfKeys", "r: f16[Q,K], u: f32[2,K]", "S + f32(r[i,j]) + u[h,j]"},
    {"OfOneOfSeveral", "r: f32[Q,K,3]", "S + r[i,j,1]"},
    {"OfDocuments", "x: i32[1,K]", "select(x[b,j] == x[b,i] || j == 0, S, -inf)"},
    {"Slopes", "x: f32[2]", "S + x[h] * f32(j - i)"},
    {"LowestNumberHidesAllKeys", "r: f32[1,K]", "select(j < i - 1, S + r[b,j], -3.4028234663852886e38)"},
    {"FactorOfQueries", "x: f32[1,2,Q]", "S * x[b,h,i]"},
    {"SumOfVectors", "x: f32[2,Q], y: f32[2,K]", "S + x[h,i] + y[h,j]"},
};

std::string TextOf(const ScoreForm& form, int queries, int keys) {
  constexpr char kText[] =
      R"(workload w(q: f16[1,2,Q,16], k: f16[1,1,K,16], v: f16[1,1,K,16], INPUTS) -> (o: f16[1,2,Q,16]) {
  s[b,h,i,j]: f32[1,2,Q,K] = sum[d:16](f32(q[b,h,i,d]) * f32(k[b,h//2,j,d]))
  c[b,h,i,j]: f32[1,2,Q,K] = VALUE
  m[b,h,i]: f32[1,2,Q] = max[j:K](c[b,h,i,j])
  e[b,h,i,j]: f32[1,2,Q,K] = exp(c[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[1,2,Q] = sum[j:K](e[b,h,i,j])
  t[b,h,i,d]: f32[1,2,Q,16] = sum[j:K](f32(f16(e[b,h,i,j])) * f32(v[b,h//2,j,d]))
  o[b,h,i,d] = f16(t[b,h,i,d] / l[b,h,i])
})";
  const std::string text = absl::StrReplaceAll(kText, {{"INPUTS", form.inputs}, {"VALUE", form.value}});
  return absl::StrReplaceAll(text, {{"Q", absl::StrCat(queries)},
                                    {"K", absl::StrCat(keys)},
                                    {"N", absl::StrCat(queries + keys)},
                                    {"S", "s[b,h,i,j] * 0.125"}});
}

// The default is one pass, with merges where the keys are in parts, and computes what the stages say.
void CheckOnePass(const std::string& text) {
  SCOPED_TRACE(text);
  const Workload workload = CanonicalWorkload(text);
  for (const char* preset : {"h200", "a100"}) {
    const absl::StatusOr<Target> target = ParseTarget(preset);
    ASSERT_TRUE(target.ok()) << target.status();
    const Sketch sketch = GenerateSketches(workload, *target).front();
    EXPECT_TRUE(absl::StartsWith(sketch.name, "streamed")) << sketch.name;
    EXPECT_EQ(absl::StrContains(sketch.name, "+"), absl::EndsWith(sketch.name, "+merge")) << sketch.name;
    const absl::Status same = CheckLoweredPoint(workload, *target, sketch, sketch.default_choice, 2e-2);
    EXPECT_TRUE(same.ok()) << preset << ": " << same;
  }
}

class AttentionScoresTest : public ::testing::TestWithParam<ScoreForm> {};

TEST_P(AttentionScoresTest, AreOnePass) {
  // Tiles of queries, and a few queries whose heads share a tile and whose keys are in parts.
  for (const int queries : {70, 3}) CheckOnePass(TextOf(GetParam(), queries, /*keys=*/128));
}

// Queries, keys and values may be of one tensor, which then has several tiles.
TEST(AttentionOperandsTest, MayBeOfOneTensor) {
  constexpr char kText[] = R"(workload w(INPUTS) -> (o: f16[2,70,16]) {
  s[h,i,j]: f32[2,70,70] = sum[d:16](f32(Q[h,i,d]) * f32(K[h,j,d]))
  m[h,i]: f32[2,70] = max[j:70](s[h,i,j])
  e[h,i,j]: f32[2,70,70] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[2,70] = sum[j:70](e[h,i,j])
  t[h,i,d]: f32[2,70,16] = sum[j:70](f32(f16(e[h,i,j])) * f32(V[h,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
})";
  struct Operands {
    std::string q, k, v;
  };
  for (const Operands& names : {Operands{"x", "x", "x"}, {"x", "x", "y"}, {"y", "x", "x"}, {"x", "y", "x"}}) {
    const bool one = names.q == names.k && names.k == names.v;
    CheckOnePass(
        absl::StrReplaceAll(kText, {{"INPUTS", one ? "x: f16[2,70,16]" : "x: f16[2,70,16], y: f16[2,70,16]"},
                                    {"Q", names.q},
                                    {"K", names.k},
                                    {"V", names.v}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, AttentionScoresTest, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return form.param.name; });

}  // namespace
}  // namespace mycc
