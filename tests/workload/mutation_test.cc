// Mutated programs: each is refused with a place and what was expected, or is valid and survives every round
// trip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"

namespace mycc {
namespace {

const std::vector<std::string>& Seeds() {
  static const std::vector<std::string> seeds = {
      R"(# count 3
workload conv(x: f32[1,3,8,8], w: const f32[4,3,3,3], b: const f32[4]) -> (y: f32[1,4,8,8]) {
  p[n,c,i,j]: f32[1,3,10,10] = select(1 <= i && i < 9 && 1 <= j && j < 9, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[1,4,8,8] = sum[c:3, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])
  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)
})",
      R"(v1 workload norm(x: bf16[4,6], g: bf16[6]) -> (y: bf16[4,6], m: f32[4]) {
  m[i] = sum[k:2*3](f32(x[i,k]) / 6.0)
  v[i]: f32[4] = sum[k:6](pow(f32(x[i,k]) - m[i], 2.0))
  y[i,j] = bf16((f32(x[i,j]) - m[i]) * rsqrt(v[i] + 1e-5)) * g[j]
})",
      R"(workload gather(idx: i32[5], u: u8[5], t: f32[9,4], q: i8[4]) -> (y: f32[5,4], k: i32[], s: i32[]) {
  y[i,j] = select(!(u[i] > 3) || i // 2 % 2 == 1, t[clamp(idx[i], 0, 8), j] * f32(q[(i*4+j)%4]), -inf)
  k[] = argmin[a:5](abs(y[a,0]))
  s[] = prod[a:5, b:4](i32(u[a]) + 2)
})",
  };
  return seeds;
}

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words = {" ",
                                                 "\n",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 ",",
                                                 ":",
                                                 "=",
                                                 "->",
                                                 "-",
                                                 "!",
                                                 "//",
                                                 "%",
                                                 "&&",
                                                 "<=",
                                                 "0",
                                                 "1",
                                                 "7",
                                                 "1e9",
                                                 "0.5",
                                                 "inf",
                                                 "nan",
                                                 "x",
                                                 "i",
                                                 "y",
                                                 "k",
                                                 "sum[k:3](",
                                                 "max(",
                                                 "select(",
                                                 "clamp(",
                                                 "f16(",
                                                 "f32",
                                                 "i8",
                                                 "bool",
                                                 "const",
                                                 "workload ",
                                                 "# count 2\n",
                                                 "..",
                                                 "9223372036854775808",
                                                 "1099511627776",
                                                 "1e308",
                                                 "in",
                                                 "\xff",
                                                 "#"};
  return words;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Make() {
    std::string text = Seeds()[Below(Seeds().size())];
    for (size_t k = 1 + Below(Below(4) + 1); k > 0 && !text.empty(); --k) Mutate(&text);
    return text;
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  void Mutate(std::string* text) {
    const size_t at = Below(text->size());
    const std::string& other = Seeds()[Below(Seeds().size())];
    switch (Below(6)) {
      case 0: text->erase(at, 1 + Below(4)); break;
      case 1: text->insert(at, Words()[Below(Words().size())]); break;
      case 2: text->replace(at, 1, Words()[Below(Words().size())]); break;
      case 3: text->insert(at, other.substr(Below(other.size()), Below(30))); break;
      case 4: (*text)[at] = static_cast<char>(Below(256)); break;
      default: text->insert(at, text->substr(Below(text->size()), Below(20))); break;
    }
  }

  std::mt19937_64 random_;
};

void ExpectGoodRefusal(const std::string& message, const std::string& text) {
  EXPECT_THAT(message, testing::MatchesRegex("m:[0-9]+:[0-9]+: .*")) << text;
  EXPECT_TRUE(absl::StrContains(message, "expected")) << message << "\n" << text;
  EXPECT_LT(message.size(), 2000u) << message;
}

void ExpectRoundTrips(const Workload& workload, const std::string& text) {
  ASSERT_TRUE(Validate(workload).ok()) << Validate(workload) << "\n" << text;
  const std::string printed = PrintWorkload(workload);
  const auto parsed = ParseWorkload(printed, "printed");
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << printed;
  EXPECT_EQ(PrintWorkload(*parsed), printed);
  const std::string canonical = CanonicalText(workload);
  const auto again = ParseWorkload(canonical, "canonical");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << canonical;
  EXPECT_EQ(CanonicalText(*again), canonical);
  EXPECT_EQ(ShapeErasedHash(*again), ShapeErasedHash(workload));
}

TEST(Mutation, TextIsRefusedWithAPlaceOrRoundTrips) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const std::string text = Mutator(seed).Make();
    const auto workloads = ParseWorkloads(text, "m");
    if (!workloads.ok()) {
      ExpectGoodRefusal(std::string(workloads.status().message()), text);
      continue;
    }
    ++accepted;
    for (const Workload& workload : *workloads) ExpectRoundTrips(workload, text);
  }
  EXPECT_GT(accepted, 500);  // or the mutations are too wild to test anything but the first refusal
}

}  // namespace
}  // namespace mycc
