// The rule for chains of few rows: that default and random points of its spaces compute what the stages say,
// when keys are cut into parts for the threads, and what the rule refuses.
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/points.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One query of each head, as in decoding. Vectors run along the depth, whose end is no whole vector.
constexpr char kDecoding[] =
    R"(workload decoding(q: f32[2,3,1,20], k: f32[2,3,70,20], v: f32[2,3,70,24]) -> (o: f32[2,3,1,24]) {
  s[b,h,i,j]: f32[2,3,1,70] = sum[d:20](q[b,h,i,d] * k[b,h,j,d])
  c[b,h,i,j]: f32[2,3,1,70] = s[b,h,i,j] * 0.25
  m[b,h,i]: f32[2,3,1] = max[j:70](c[b,h,i,j])
  e[b,h,i,j]: f32[2,3,1,70] = exp(c[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[2,3,1] = sum[j:70](e[b,h,i,j])
  t[b,h,i,d]: f32[2,3,1,24] = sum[j:70](e[b,h,i,j] * v[b,h,j,d])
  o[b,h,i,d] = t[b,h,i,d] / l[b,h,i]
})";

constexpr char kNarrowDecoding[] =
    R"(workload narrow(q: bf16[1,1,32], k: bf16[1,70,32], v: bf16[1,70,48]) -> (o: bf16[1,1,48]) {
  s[h,i,j]: f32[1,1,70] = sum[d:32](f32(q[h,i,d]) * f32(k[h,j,d]))
  c[h,i,j]: f32[1,1,70] = select(j <= i + 20, s[h,i,j] * 0.25, -inf)
  m[h,i]: f32[1,1] = max[j:70](c[h,i,j])
  e[h,i,j]: f32[1,1,70] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[1,1] = sum[j:70](e[h,i,j])
  t[h,i,d]: f32[1,1,48] = sum[j:70](f32(bf16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = bf16(t[h,i,d] / l[h,i])
})";

std::string Replaced(const std::string& text, const std::string& from, const std::string& to) {
  return absl::StrReplaceAll(text, {{from, to}});
}

Target TargetOf(const std::string& text) {
  absl::StatusOr<Target> target = ParseTarget(text);
  EXPECT_TRUE(target.ok()) << target.status();
  return *std::move(target);
}

constexpr char kAmx[] = "v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2";

// The names of the sketches that compute the chain in one pass, after the points of all of them were checked.
std::vector<std::string> CheckedSketches(const std::string& text, const Target& target,
                                         double tolerance = 1e-4) {
  const Workload workload = CanonicalWorkload(text);
  std::vector<std::string> names;
  for (const Sketch& sketch : GenerateSketches(workload, target)) {
    if (!IsStreamedSketch(sketch.name)) continue;
    EXPECT_GT(CheckPoints(workload, sketch, target, tolerance), 3) << sketch.name;
    names.push_back(sketch.name);
  }
  return names;
}

TEST(StreamedDotRuleTest, OneQuery) {
  EXPECT_THAT(CheckedSketches(kDecoding, TestTarget()), ElementsAre("streamed_dot"));
}

TEST(StreamedDotRuleTest, AFewQueriesAndAMask) {
  std::string text = Replaced(Replaced(kDecoding, "3,1,", "3,3,"), "[2,3,1]", "[2,3,3]");
  text = Replaced(text, "s[b,h,i,j] * 0.25", "select(j <= i + 67, s[b,h,i,j] * 0.25, -inf)");
  EXPECT_THAT(CheckedSketches(text, TestTarget()), ElementsAre("streamed_dot"));
}

// Processors with and without products of pairs: numbers are widened as they are read.
TEST(StreamedDotRuleTest, NarrowNumbers) {
  for (const char* type : {"bf16", "f16"}) {
    SCOPED_TRACE(type);
    EXPECT_THAT(CheckedSketches(Replaced(kNarrowDecoding, "bf16", type), TargetOf(kAmx), 2e-2),
                ElementsAre("streamed_dot"));
  }
}

// A head alone would keep one of two threads busy: each has a half of the keys, or one after the other two
// quarters. The numbers of keys are no multiple of the parts.
TEST(StreamedDotRuleTest, PartsOfTheKeysForTheThreads) {
  const std::string text = Replaced(Replaced(kDecoding, "2,3,", "1,1,"), "70", "1050");
  const std::vector<std::string> names = CheckedSketches(text, TargetOf(kAmx));
  ASSERT_EQ(names.size(), 3u);
  EXPECT_THAT(names[0], StartsWith("streamed_dot+"));
  EXPECT_THAT(names[1], StartsWith("streamed_dot+"));
  EXPECT_EQ(names[2], "streamed_dot");
}

TEST(StreamedDotRuleTest, NoPartsForOneThreadOrFewKeys) {
  const std::string text = Replaced(kDecoding, "2,3,", "1,1,"), many = Replaced(text, "70", "1050");
  EXPECT_THAT(CheckedSketches(text, TargetOf(kAmx)), ElementsAre("streamed_dot"));
  EXPECT_THAT(CheckedSketches(many, TargetOf("v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=1")),
              ElementsAre("streamed_dot"));
}

// The heads that have the same keys are the rows of one tile, so that these are read once: first that, then
// each head for itself.
TEST(StreamedDotRuleTest, HeadsWithTheSameKeys) {
  std::string text = Replaced(kDecoding, "2,3,1,", "2,6,1,");
  text = Replaced(Replaced(text, "[2,3,1]", "[2,6,1]"), "b,h,j,d", "b,h//3,j,d");
  const std::vector<std::string> names = CheckedSketches(text, TestTarget());
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[0], HasSubstr("streamed_dot+"));
  EXPECT_EQ(names[1], "streamed_dot");
}

// Parts have at least 256 keys each, however many threads there are.
TEST(StreamedDotRuleTest, NoShortParts) {
  const std::string text = Replaced(Replaced(kDecoding, "2,3,", "1,1,"), "70", "600");
  EXPECT_THAT(CheckedSketches(text, TargetOf("v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=64")),
              ElementsAre(StartsWith("streamed_dot+"), "streamed_dot"));
}

TEST(StreamedDotRuleTest, KeysInPages) {
  std::string text = Replaced(kDecoding, "f32[2,3,70,2", "f32[5,3,16,2");
  text = Replaced(Replaced(text, "b,h,j,d]", "clamp(i64(n[b,j//16]), 0, 4),h,j%16,d]"), ") -> ",
                  ", n: i32[2,5]) -> ");
  EXPECT_THAT(CheckedSketches(text, TestTarget()), ElementsAre("streamed_dot"));
}

TEST(StreamedDotRuleTest, SaysWhatIsNotReadInPlace) {
  EXPECT_THAT(
      WhyNotStreamed(CanonicalWorkload(Replaced(Replaced(kDecoding, "k: f32[2,3,70,20]", "k: f32[2,3,20,70]"),
                                                "k[b,h,j,d]", "k[b,h,d,j]")),
                     TargetOf(kAmx)),
      Contains(HasSubstr("as its last index")));
  EXPECT_THAT(WhyNotStreamed(CanonicalWorkload(Replaced(Replaced(kDecoding, ",20]", ",8]"), "d:20", "d:8")),
                             TargetOf(kAmx)),
              Contains(HasSubstr("expected at least 16")));
}

}  // namespace
}  // namespace mycc
