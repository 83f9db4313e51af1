// Ties of a final round, and which of them is chosen.
#include "server/ties.h"

#include <cmath>

#include "db/record_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/names.h"
#include "proto/proof.h"
#include "server/final_round.h"
#include "tests/server/timed.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

v1::Record Held(const std::string& trace, double seconds, double half_interval = 0.005,
                uint64_t code_bytes = 0) {
  v1::Record record;
  record.set_trial("j0000000000000001/0/0/" + trace);
  record.set_trace(trace);
  *record.mutable_result() = Timed(seconds, half_interval);
  if (code_bytes > 0) record.mutable_result()->mutable_resources()->set_code_bytes(code_bytes);
  return record;
}

std::vector<size_t> Ties(const std::vector<v1::Record>& records) {
  std::vector<const v1::Record*> pointers;
  for (const v1::Record& record : records) pointers.push_back(&record);
  return TiesForBest(pointers);
}

TEST(TiesTest, AreTheFastestAndWhatOverlapsIt) {
  EXPECT_THAT(Ties({Held("a", 1.0)}), ElementsAre(0));
  EXPECT_THAT(Ties({Held("a", 1.02), Held("b", 1.0), Held("c", 1.008)}), ElementsAre(1, 2));
}

TEST(TiesTest, AWideIntervalIsNoReasonToChooseASlowOne) {
  EXPECT_THAT(Ties({Held("a", 1.10, 0.2), Held("b", 1.0, 0.2), Held("c", 1.015, 0.2)}), ElementsAre(1, 2));
}

TEST(TiesTest, TimesWithoutIntervalsTieWhenTheyAreEqual) {
  std::vector<v1::Record> records = {Held("b", 1.0), Held("a", 1.0), Held("c", 1.001)};
  for (v1::Record& record : records) {
    record.mutable_result()->mutable_timing()->clear_ci_low_seconds();
    record.mutable_result()->mutable_timing()->clear_ci_high_seconds();
  }
  EXPECT_THAT(Ties(records), ElementsAre(1, 0));
}

TEST(TiesTest, PreferFewerResourcesThenSteadierTimesThenTheText) {
  EXPECT_THAT(Ties({Held("a", 1.000, 0.005, 900), Held("b", 1.004, 0.005, 800)}), ElementsAre(1, 0));
  EXPECT_THAT(Ties({Held("a", 1.000, 0.012), Held("b", 1.004, 0.002)}), ElementsAre(1, 0));
  EXPECT_THAT(Ties({Held("b", 1.000, 0.0050), Held("a", 1.004, 0.0051)}), ElementsAre(1, 0))
      << "widths that are nearly the same are the same";
  std::vector<v1::Record> spilling = {Held("a", 1.0, 0.005, 800), Held("b", 1.004, 0.005, 900)};
  spilling[0].mutable_result()->mutable_resources()->set_spill_bytes(8);
  EXPECT_THAT(Ties(spilling), ElementsAre(1, 0));
}

// Records of others and of older builds may hold any bounds.
TEST(TiesTest, AnIntervalThatIsNoNumberIsNone) {
  std::vector<v1::Record> records = {Held("b", 1.0), Held("a", 1.001)};
  for (v1::Record& record : records) {
    record.mutable_result()->mutable_timing()->set_ci_low_seconds(std::nan(""));
    record.mutable_result()->mutable_timing()->set_ci_high_seconds(std::nan(""));
  }
  EXPECT_THAT(Ties(records), ElementsAre(0));
  EXPECT_EQ(FinalTimesOf(records, std::nullopt).ties, 0u);
}

// Two rounds of the same finalists, whose noise reverses the order of the times.
TEST(TiesTest, TwoRoundsChooseAlikeAndTheLogRanksSo) {
  FinalRound round{FinalRoundName(JobId(1), 0, 77), 0, {}};
  round.finalists = {Held("a", 1.00, 0.005, 900), Held("b", 1.01, 0.005, 800), Held("c", 1.02, 0.005, 700)};
  for (const auto& [a, b] : {std::pair(1.000, 1.004), std::pair(1.004, 1.000)}) {
    const auto records = RecordsOf(round, {Timed(a), Timed(b), Timed(1.1)}, 1000);
    ASSERT_TRUE(records.ok()) << records.status();
    const auto rank = [&](int i) { return RankSeconds((*records)[i].result().timing()); };
    EXPECT_LT(rank(1), rank(0)) << "fewer bytes of code";
    EXPECT_LT(rank(0), 1.0) << "before what was the best";
    EXPECT_NEAR(rank(0), rank(1), 1e-12) << "a tie";
    EXPECT_NEAR(rank(2), 1.1, 1e-12) << "as far behind the fastest as its time is";
    const FinalTimes times = FinalTimesOf(*records, std::nullopt);
    EXPECT_EQ(times.best_seconds, b) << "that of the chosen one";
    EXPECT_EQ(times.ties, 1u);
    EXPECT_EQ(times.finalists, 3u);
  }
}

// A worker that never proved this binary, and finds it slower than the fastest, does not prove it.
TEST(FinalRoundTest, TheProofOfAnEqualBinaryIsKept) {
  FinalRound round;
  round.name = "final";
  std::vector<v1::MeasureResult> results;
  for (const char* digest : {"fast", "proven", "rebuilt"}) {
    v1::Record finalist = Held(digest, 1.0);
    finalist.mutable_result()->set_code_digest(digest);
    finalist.mutable_result()->mutable_verification()->set_launches(11);
    finalist.mutable_result()->mutable_verification()->set_strained_launches(kProvenLaunches);
    round.finalists.push_back(finalist);
    v1::MeasureResult& result = results.emplace_back(Timed(digest == std::string("fast") ? 1.0 : 1.5));
    result.set_code_digest(digest == std::string("rebuilt") ? "another" : digest);
    result.mutable_verification()->set_launches(1);
  }
  const std::vector<v1::Record> records = RecordsOf(round, results, 1).value();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_TRUE(IsServable(records[1]));
  EXPECT_EQ(records[1].result().timing().seconds(), 1.5);
  EXPECT_FALSE(IsServable(records[2]));
}

}  // namespace
}  // namespace mycc
