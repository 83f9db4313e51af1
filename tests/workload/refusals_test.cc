// Every refusal of the language: where it stands, what is wrong, what was expected. The golden file is the
// list of them all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/workload/parse.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

// Whole files.
constexpr const char* kFiles[] = {
    "",
    "# nothing\n",
    "f(x: f32[4]) -> (y: f32[4]) { }",
    "v2 workload f() -> (y: f32[]) { y[] = 0.0 }",
    "workload (x: f32[4])",
    "workload max() -> (y: f32[]) { y[] = 0.0 }",
    "workload f[N in 1..512](x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }",
    "workload f(x: f32[N]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f() -> (y: f32[]) { y[] = 0.0 } workload f() -> (y: f32[]) { y[] = 0.0 }",
    "workload f() -> (y: f32[]) { y[] = 0.0 } }",
    "# count 0\nworkload f() -> (y: f32[]) { y[] = 0.0 }",
    "# count many\nworkload f() -> (y: f32[]) { y[] = 0.0 }",
    "workload f(x f32[4]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4], x: f32[4]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4]) -> (x: f32[4]) { x[i] = x[i] }",
    "workload f(x: float[4]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4.0]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4-5]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4//0]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[1099511627777]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[1099511627776*1099511627776]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[1099511627776,2]) -> (y: f32[4]) { y[i] = x[0,i] }",
    "workload f(x: f32[1099511627776,0,4294967296,4294967296]) -> (y: f32[4]) { y[i] = 0.0 }",
    "workload f(x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]) -> (y: f32[]) { y[] = 0.0 }",
    "workload f(x: f32[4] y: f32[4]) -> (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4]) (y: f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4]) -> () { }",
    "workload f(x: f32[4]) -> (y: const f32[4]) { y[i] = x[i] }",
    "workload f(x: f32[4]) -> (y: f32[4]) y[i] = x[i]",
    "workload f(x: f32[4]) -> (y: f32[4]) { }",
    "workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i]",
    "workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] y[i] = x[i] }",
    "workload f(x: f32[4]) -> (y: f32[4]) { x[i] = 0.0 y[i] = x[i] }",
};

// Stages of a workload over a few tensors, in `(y: f32[8])`.
constexpr const char* kStages[] = {
    "y = x[i]",
    "y[i = x[i]",
    "y[i,i] = x[i]",
    "y[sum] = x[i]",
    "y[i]: f32[9] = x[i]",
    "y[i]: f16[8] = h[i]",
    "y[i] x[i]",
    "t[i] = x[i] y[i] = t[i]",
    "t[i]: f32[8] = y[i] y[i] = t[i]",
    "t[i,i]: f32[8,8] = x[i] y[i] = t[i,0]",
    "5[i] = x[i]",
    "y[i] =",
    "y[i] = )",
    "y[i] = x[i] +",
    "y[i] = x[i] x",
    "y[i] = x[i] * * 2.0",
    "y[i] = (x[i]",
    "y[i] = x[i] 2.0",
    "y[i] = z[i]",
    "y[i] = x[k]",
    "y[i] = i[0]",
    "y[i] = x + 1.0",
    "y[i] = x[i,0]",
    "y[i] = x[]",
    "y[i] = x[0.5]",
    "y[i] = x[i < 3]",
    "y[i] = x[i;0]",
    "y[i] = exp x[i]",
    "y[i] = exp(x[i], 1.0)",
    "y[i] = pow(x[i])",
    "y[i] = max(x[i], 0.0, 1.0)",
    "y[i] = select(x[i], 0.0, 1.0)",
    "y[i] = select(p[i], x[i])",
    "y[i] = select(p[i], x[i], h[i])",
    "y[i] = x[i] + 1",
    "y[i] = x[i] + h[i]",
    "y[i] = x[i] + m[i]",
    "y[i] = x[i] + i",
    "y[i] = p[i] + p[i]",
    "y[i] = m[i] / m[i]",
    "y[i] = x[i] // x[i]",
    "y[i] = x[i] % 2.0",
    "y[i] = exp(m[i])",
    "y[i] = tf32(h[i])",
    "y[i] = -p[i]",
    "y[i] = !x[i]",
    "y[i] = x[i] && p[i]",
    "y[i] = p[i] < p[i]",
    "y[i] = 0 <= i < 4",
    "y[i] = x[i] == 0.0 == p[i]",
    "y[i] = f16(1e9)",
    "y[i] = h[i] * 1e9",
    "y[i] = i8(200)",
    "y[i] = f32(f8e4m3(449.0))",
    "y[i] = f32(f8e4m3(-inf))",
    "y[i] = f32(f8e5m2(57345.0))",
    "y[i] = u[i] + 256",
    "y[i] = i32(0.5)",
    "y[i] = 1e39",
    "y[i] = 9223372036854775808",
    "y[i] = -9223372036854775809",
    "y[i] = f32(i64(9223372036854775808))",
    "y[i] = f32(u64(-1))",
    "y[i] = f32(u64(5) - -1)",
    "y[i] = f32(u16(65536))",
    "y[i] = f32(i16(32768))",
    "y[i] = f32(u32(-1))",
    "y[i] = f32[3]",
    "y[i] = h[i]",
    "y[i] = i",
    "y[i] = i < 4",
    "y[i] = sum",
    "y[i] = sum(x[i])",
    "y[i] = 1.0 + sum[k:8](x[k])",
    "y[i] = sum[k:8](x[k]) + 1.0",
    "y[i] = exp(max[k:8](x[k]))",
    "y[i] = sum[](x[i])",
    "y[i] = sum[k](x[k])",
    "y[i] = sum[k:8 x[k]",
    "y[i] = sum[k:8] x[k]",
    "y[i] = sum[i:8](x[i])",
    "y[i] = sum[k:8, k:8](x[k])",
    "y[i] = sum[k:0-1](x[k])",
    "y[i] = sum[k:8](p[k])",
    "y[i] = argmax[k:8](x[k])",
    "t[i]: i32[8] = argmax[k:8, l:2](x[k]) y[i] = f32(t[i])",
    "t[]: i32[] = argmin[k:0](x[k]) y[i] = f32(t[])",
    "y[i] = prod[a:1099511627776, b:1099511627776](1.0)",
    "y[i] = x[i+1]",
    "y[i] = x[i-1]",
    "y[i] = select(1 <= i, x[i-2], 0.0)",
    "y[i] = select(p[i], x[i+1], 0.0)",
    "y[i] = select(i < 7, 0.0, x[i+1])",
    "y[i] = select(0 <= i && x[i+1] > 0.0, 1.0, 0.0)",
    "t[i]: f32[4] = x[i] y[i] = t[i]",
    "y[i] = x[m[i]]",
    "y[i] = x[n[i]]",
    "y[i] = x[m[i] + 1]",
    "y[i] = x[clamp(m[i], 0, 8)]",
    "y[i] = x[clamp(m[clamp(m[i], 0, 7)], 0, 7)]",
    "y[i] = x[i * i]",
    "y[i] = x[i // i]",
    "y[i] = x[i % 0]",
    "y[i] = x[i // -2]",
    "y[i] = x[abs(i)]",
    "y[i] = x[select(i < 3, i, 0)]",
    "y[i] = x[i64(x[i])]",
    "y[i] = x[clamp(i * 4611686018427387904 * 4, 0, 7)]",
    "y[i] = x[clamp(n[i] * 2, 0, 7)]",
    "y[i] = e[i]",
};

std::string Refuse(const std::string& text) {
  const auto workloads = ParseWorkloads(text, "f.te");
  EXPECT_FALSE(workloads.ok()) << "accepted: " << text;
  if (workloads.ok()) return "accepted";
  EXPECT_EQ(workloads.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(workloads.status().message());
  EXPECT_THAT(message, testing::MatchesRegex("f.te:[0-9]+:[0-9]+: .*"));
  EXPECT_TRUE(absl::StrContains(message, "expected")) << message;
  EXPECT_FALSE(absl::StrContains(message, "\n")) << message;
  return message;
}

TEST(Refusals, OfFiles) {
  std::string all;
  for (const char* text : kFiles) absl::StrAppend(&all, text, "\n    ", Refuse(text), "\n");
  EXPECT_TRUE(MatchesGolden("workload/refusals_of_files", all));
}

TEST(Refusals, OfStages) {
  std::string all;
  for (const char* stages : kStages) {
    // The stages have a line of their own, so that columns are theirs.
    const std::string text = absl::StrCat(
        "workload f(x: f32[8], h: f16[8], m: i32[8], n: i64[8], u: u8[8], p: bool[8], e: f32[0]) -> (y: "
        "f32[8]) {\n",
        stages, "\n}");
    absl::StrAppend(&all, stages, "\n    ", Refuse(text), "\n");
  }
  EXPECT_TRUE(MatchesGolden("workload/refusals_of_stages", all));
}

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string OfStage(const std::string& value) {
  return Refuse(absl::StrCat("workload f(x: f32[8]) -> (y: f32[8]) {\ny[i] = ", value, "\n}"));
}

TEST(Refusals, OfDepth) {
  const std::string nested =
      "f.te:2:136: more than 128 brackets and signs inside one another; expected stages of their own";
  EXPECT_EQ(OfStage(Repeat("(", 100000)), nested);
  EXPECT_EQ(OfStage(Repeat("-", 100000) + "x[i]"), nested);
  EXPECT_EQ(OfStage(Repeat("exp(", 300) + "x[i]" + Repeat(")", 300)),
            "f.te:2:520: more than 128 brackets and signs inside one another; expected stages of their own");
  EXPECT_THAT(OfStage("x[i]" + Repeat(" + x[i]", 100000)),
              testing::HasSubstr("the expression has more than 256 levels"));
  EXPECT_THAT(Refuse("workload f(x: f32[" + Repeat("(", 100000) + "1" + Repeat(")", 100000)),
              testing::HasSubstr("more than 128 brackets inside one another"));
}

TEST(Refusals, OfSize) {
  // A balanced tree of reads: not deep, but too large.
  std::string tree = "x[i]";
  for (int level = 0; level < 15; ++level) tree = absl::StrCat("(", tree, " + ", tree, ")");
  EXPECT_THAT(OfStage(tree), testing::HasSubstr("the expression has more than 65536 operations"));
  std::string stages;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&stages, "t", i, "[i]: f32[8] = x[i] ");
  EXPECT_THAT(Refuse("workload f(x: f32[8]) -> (y: f32[8]) { " + stages + "y[i] = x[i] }"),
              testing::HasSubstr("more than 256 stages"));
}

TEST(Refusals, OfDivisionsInsideOneAnother) {
  std::string index = "i";
  for (int k = 0; k < 9; ++k) index = absl::StrCat("(", index, " + 1) % ", 90 - k);
  EXPECT_THAT(OfStage("x[clamp(" + index + ", 0, 7)]"),
              testing::HasSubstr("more than 8 divisions of i64 inside one another"));
}

}  // namespace
}  // namespace mycc
