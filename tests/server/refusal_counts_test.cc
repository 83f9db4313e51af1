// Reasons that differ in numbers are one kind.
#include "server/refusal_counts.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(RefusalCountsTest, ReasonsThatDifferInNumbersAreOneKind) {
  RefusalCounts counts;
  counts.Add("17 accumulators of 16", 2);
  counts.Add("18 accumulators of 16", 3);
  counts.Add("shared memory is full", 4);
  const std::vector<RefusalCount> found = counts.MostFrequent();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].reason, "# accumulators of 16");
  EXPECT_EQ(found[0].points, 5);
  EXPECT_EQ(found[1].reason, "shared memory is full");
}

TEST(RefusalCountsTest, KindsAreCountedOn) {
  RefusalCounts generation, job;
  generation.Add("17 accumulators of 16", 1);
  generation.Add("18 accumulators of 16", 1);
  for (const RefusalCount& count : generation.MostFrequent()) job.Add(count.reason, count.points);
  job.Add("19 accumulators of 32", 1);
  const std::vector<RefusalCount> found = job.MostFrequent();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].reason, "# accumulators of #");
  EXPECT_EQ(found[0].points, 3);
}

TEST(RefusalCountsTest, TheRareOnesAreTogether) {
  RefusalCounts counts;
  for (char c = 'a'; c <= 'z'; ++c) counts.Add(absl::StrCat("reason ", std::string(1, c)), c - 'a' + 1);
  counts.Add(std::string(500, 'x') + "\nmore", 100);
  const std::vector<RefusalCount> found = counts.MostFrequent();
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found[0].reason, std::string(160, 'x'));
  EXPECT_EQ(found[1].reason, "reason z");
  EXPECT_EQ(found[7].reason, "other reasons");
  int64_t points = 0;
  for (const RefusalCount& count : found) points += count.points;
  EXPECT_EQ(points, 100 + 26 * 27 / 2);
}

}  // namespace
}  // namespace mycc
