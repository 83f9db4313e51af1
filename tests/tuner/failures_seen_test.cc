// How a task's failures lower the hopes for candidates with the same choices.
#include "tuner/search/failures_seen.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

struct Seen {
  std::vector<int> choice;
  bool ok;
};

SearchLedger LedgerOf(const std::vector<Seen>& seen) {
  SearchLedger ledger;
  std::vector<Candidate> generation;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < seen.size(); ++i) {
    Candidate& candidate = generation.emplace_back();
    candidate.index = i;
    candidate.point = {0, seen[i].choice};
    candidate.trace = keys.emplace_back(absl::StrCat("trace ", i));
  }
  ledger.Add(generation, keys);
  for (uint32_t i = 0; i < seen.size(); ++i) {
    Outcome outcome{.generation = 0, .index = i, .seconds = std::nullopt, .failure = "build_error"};
    if (seen[i].ok) outcome = {.generation = 0, .index = i, .seconds = 1e-3, .failure = ""};
    EXPECT_TRUE(ledger.Tell(outcome).ok());
  }
  return ledger;
}

// Three candidates with the choice 2 fail, one with 0 runs, as where the compiler refuses a kind of loop.
TEST(FailuresSeenTest, AChoiceThatAlwaysFailedIsWorthLessThanOneThatRan) {
  const SearchLedger ledger = LedgerOf({{{0, 1}, true}, {{2, 1}, false}, {{2, 2}, false}, {{2, 3}, false}});
  const FailuresSeen failures(ledger, 1);
  EXPECT_DOUBLE_EQ(failures.Success({0, {2, 0}}), 0.5 / 5);
  EXPECT_DOUBLE_EQ(failures.Success({0, {0, 0}}), 0.25) << "an unseen value is as all candidates are";
  EXPECT_GE(failures.Success({0, {0, 1}}), 2.4 * failures.Success({0, {2, 1}}));
  EXPECT_DOUBLE_EQ(failures.Success({1, {2, 2}}), 0.25) << "another sketch's choices are others";
}

TEST(FailuresSeenTest, NothingIsSaidWithoutFailuresOrOfGenerationsThatAreNotVisible) {
  EXPECT_EQ(FailuresSeen(LedgerOf({{{0}, true}, {{1}, true}}), 1).Success({0, {1}}), 1);
  EXPECT_EQ(FailuresSeen(LedgerOf({{{0}, false}, {{1}, true}}), 0).Success({0, {0}}), 1);
  EXPECT_LT(FailuresSeen(LedgerOf({{{0}, false}, {{1}, true}}), 9).Success({0, {0}}), 0.5);
}

TEST(FailuresSeenTest, ManyFailuresAreLeftToTheModel) {
  std::vector<Seen> seen(FailuresSeen::kMost - 1, {{0}, false});
  EXPECT_LT(FailuresSeen(LedgerOf(seen), 1).Success({0, {0}}), 1);
  seen.push_back({{0}, false});
  EXPECT_EQ(FailuresSeen(LedgerOf(seen), 1).Success({0, {0}}), 1);
}

}  // namespace
}  // namespace mycc
