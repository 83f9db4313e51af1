// The choice of finalists, and the records and ranks that a final round makes: pure functions.
#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/names.h"
#include "server/final_round.h"
#include "tests/server/timed.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StoredRecord Candidate(const std::string& trace, const v1::MeasureResult& result,
                       const std::string& digest = "") {
  StoredRecord stored;
  stored.record.set_trial("j0000000000000001/0/0/" + trace);
  stored.record.set_trace(trace);
  *stored.record.mutable_result() = result;
  stored.record.mutable_result()->set_code_digest(digest.empty() ? "code " + trace : digest);
  return stored;
}

std::vector<std::string> TracesOf(const std::vector<v1::Record>& records) {
  std::vector<std::string> traces;
  traces.reserve(records.size());
  for (const v1::Record& record : records) traces.push_back(record.trace());
  return traces;
}

// Records with these times, the fastest first; candidates are called by their positions.
std::vector<StoredRecord> Ranked(const std::vector<double>& seconds) {
  std::vector<StoredRecord> ranked;
  ranked.reserve(seconds.size());
  for (const double time : seconds) ranked.push_back(Candidate(std::to_string(ranked.size()), Timed(time)));
  return ranked;
}

TEST(FinalistsTest, AreTheLeadersThatLieCloseTogether) {
  EXPECT_THAT(Finalists({}), IsEmpty());
  EXPECT_THAT(TracesOf(Finalists(Ranked({1.00, 1.01, 1.02, 1.03, 1.04, 1.06, 1.07}))),
              ElementsAre("0", "1", "2", "3", "4"));
}

// A single timing that was much too fast leads, and the best candidate is not near it.
TEST(FinalistsTest, ALuckyLeaderMeetsTheNextOnes) {
  EXPECT_THAT(TracesOf(Finalists(Ranked({1.00, 1.24, 1.25, 1.26, 1.27}))), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(TracesOf(Finalists(Ranked({1.00, 1.24, 1.60}))), ElementsAre("0", "1")) << "too far behind";
  // It has met others: what a later job finds far behind it is no reason for another round.
  std::vector<StoredRecord> ranked = Ranked({1.00, 1.24, 1.25});
  ranked[0].record.mutable_result()->mutable_timing()->set_final_round("j0000000000000001/0/77");
  EXPECT_THAT(TracesOf(Finalists(ranked)), ElementsAre("0"));
}

TEST(FinalistsTest, AnIntervalThatReachesTheBestIsCloseEnough) {
  std::vector<StoredRecord> ranked = Ranked({1.00, 1.01, 1.02, 1.03, 1.30, 1.31});
  ranked[0] = Candidate("0", Timed(1.00, 0.10));
  ranked[4] = Candidate("4", Timed(1.30, 0.21));
  EXPECT_THAT(TracesOf(Finalists(ranked)), ElementsAre("0", "1", "2", "3", "4"));
}

TEST(FinalistsTest, TimesWithoutAnIntervalCountAsTheyStand) {
  v1::MeasureResult best = Timed(1.0), other = Timed(1.6);
  for (v1::MeasureResult* result : {&best, &other}) {
    result->mutable_timing()->clear_ci_low_seconds();
    result->mutable_timing()->clear_ci_high_seconds();
  }
  EXPECT_THAT(Finalists({Candidate("0", best), Candidate("1", other)}), SizeIs(1));
}

TEST(FinalistsTest, AreEightAtMostAndNoBinaryTwice) {
  std::vector<StoredRecord> ranked;
  ranked.reserve(12);
  for (int i = 0; i < 12; ++i) ranked.push_back(Candidate(std::to_string(i), Timed(1 + 0.001 * i)));
  EXPECT_THAT(TracesOf(Finalists(ranked)), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  ranked[1].record.mutable_result()->set_code_digest("code 0");
  ranked[3].record.mutable_result()->clear_code_digest();
  ranked[4].record.mutable_result()->clear_code_digest();
  EXPECT_THAT(TracesOf(Finalists(ranked)), ElementsAre("0", "2", "3", "4", "5", "6", "7", "8"));
}

TEST(FinalistsTest, EarlierRoundsCountByTheirRank) {
  // Taken on a slow day, and the best all the same.
  v1::MeasureResult earlier = Timed(2.0);
  earlier.mutable_timing()->set_rank_seconds(1.0);
  EXPECT_THAT(
      TracesOf(Finalists({Candidate("0", earlier), Candidate("1", Timed(1.03)), Candidate("2", Timed(1.6))})),
      ElementsAre("0", "1"));
}

TEST(FinalistsTest, TheDefaultIsOneMoreUnlessItIsFarBehind) {
  const std::vector<StoredRecord> ranked = {Candidate("0", Timed(1.00)), Candidate("1", Timed(1.01))};
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = Candidate("d", Timed(3.2)).record})),
              ElementsAre("0", "1", "d"));
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = ranked[1].record})), ElementsAre("0", "1"));
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = Candidate("d", Timed(3.2), "code 0").record})),
              ElementsAre("0", "1"));
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = Candidate("d", Timed(40)).record})),
              ElementsAre("0", "1"))
      << "hopeless";
}

TEST(FinalistsTest, ADefaultThatLeadsAloneMeetsTheNext) {
  const std::vector<StoredRecord> ranked = {Candidate("d", Timed(1.00)), Candidate("1", Timed(1.60)),
                                            Candidate("2", Timed(1.61))};
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = ranked[0].record})), ElementsAre("d", "1"));
  EXPECT_THAT(TracesOf(Finalists(ranked)), ElementsAre("d")) << "it is no default";
  EXPECT_THAT(TracesOf(Finalists({ranked[0], Candidate("1", Timed(4.1))}, {.by_default = ranked[0].record})),
              ElementsAre("d"))
      << "hopeless";
}

// The default ranks at 1.2, and took 2.4 in this job: its best one would rank at half of its own time.
TEST(FinalistsTest, TheBestOfASlowDayIsComparedByItsShareOfTheDefault) {
  const std::vector<StoredRecord> ranked = {Candidate("0", Timed(1.00)), Candidate("d", Timed(1.20))};
  const v1::Record by_default = ranked[1].record;
  const auto with_best = [&](double seconds) {
    return TracesOf(Finalists(ranked, {.by_default = by_default,
                                       .best = Candidate("b", Timed(seconds)).record,
                                       .best_share = seconds / 2.4}));
  };
  EXPECT_THAT(with_best(1.9), ElementsAre("0", "d", "b"));
  EXPECT_THAT(with_best(2.09), ElementsAre("0", "d", "b"));
  EXPECT_THAT(with_best(2.2), ElementsAre("0", "d")) << "more than 5 % behind";
  EXPECT_THAT(TracesOf(Finalists(ranked, {.by_default = by_default, .best = by_default, .best_share = 1})),
              ElementsAre("0", "d"));
}

FinalRound RoundOfThree() {
  FinalRound round{FinalRoundName(JobId(1), 0, 77), 0, {}};
  for (const auto& [trace, seconds] : {std::pair("0", 1.00), std::pair("1", 1.01), std::pair("2", 1.02)})
    round.finalists.push_back(Candidate(trace, Timed(seconds)).record);
  return round;
}

TEST(RecordsOfTest, TheWinnerTakesThePlaceOfTheBest) {
  const FinalRound round = RoundOfThree();
  // Everything is a tenth slower now, and the second is the best of them.
  const auto records = RecordsOf(round, {Timed(1.12), Timed(1.10), Timed(1.21)}, 1000);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_THAT(*records, SizeIs(3));
  const auto rank = [&records](int i) { return (*records)[i].result().timing().rank_seconds(); };
  EXPECT_LT(rank(1), 1.0) << "before what was the best, also where that is as fast";
  EXPECT_NEAR(rank(1), 1.0, 1e-12);
  EXPECT_NEAR(rank(0), 1.12 / 1.10, 1e-12);
  EXPECT_NEAR(rank(2), 1.21 / 1.10, 1e-12);
  for (const v1::Record& record : *records) {
    EXPECT_EQ(record.result().timing().final_round(), round.name);
    EXPECT_THAT(record.trial(), HasSubstr("@1000"));
  }
  EXPECT_EQ((*records)[1].result().timing().seconds(), 1.10);
}

TEST(RecordsOfTest, WhoFailsIsOutAndDoesNotSetTheMeasure) {
  v1::MeasureResult wrong = Timed(0.5);
  wrong.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  wrong.mutable_verification()->set_passed(false);
  v1::MeasureResult lost;
  lost.set_status(v1::MEASURE_STATUS_WORKER_LOST);
  const auto records = RecordsOf(RoundOfThree(), {wrong, Timed(1.2), lost}, 1000);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_THAT(*records, SizeIs(2)) << "a lost one says nothing";
  EXPECT_EQ((*records)[0].result().timing().final_round(), "");
  EXPECT_EQ((*records)[0].result().status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_NEAR((*records)[1].result().timing().rank_seconds(), 1.01, 1e-12);
}

TEST(FinalTimesTest, AreOfOneMoment) {
  FinalRound round = RoundOfThree();
  const std::optional<v1::Record> by_default = round.finalists[2];
  const auto records = RecordsOf(round, {Timed(1.13), Timed(1.10, 0.08), Timed(1.21)}, 1000);
  const FinalTimes times = FinalTimesOf(*records, by_default);
  EXPECT_EQ(times.best_seconds, 1.10);
  EXPECT_NEAR(times.best_width, 0.16, 1e-9);
  EXPECT_EQ(times.default_seconds, 1.21);
  EXPECT_EQ(times.finalists, 3u);
  EXPECT_EQ(FinalTimesOf(*records, std::nullopt).default_seconds, 0);
  EXPECT_EQ(FinalTimesOf(*records, Candidate("far behind", Timed(9)).record).default_seconds, 0);
  EXPECT_EQ(FinalTimesOf({}, by_default).finalists, 0u);
}

TEST(FinalTimesTest, AnEqualBinaryStandsForTheDefault) {
  FinalRound round = RoundOfThree();
  std::vector<v1::MeasureResult> results = {Timed(1.12), Timed(1.10), Timed(1.21)};
  results[1].set_code_digest("the same");
  const auto records = RecordsOf(round, results, 1000);
  EXPECT_EQ(FinalTimesOf(*records, Candidate("d", Timed(1.3), "the same").record).default_seconds, 1.10);
}

TEST(FinalTimesTest, ADefaultThatIsFoundWrongHasNoTime) {
  FinalRound round = RoundOfThree();
  v1::MeasureResult wrong = Timed(0.5);
  wrong.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  wrong.mutable_verification()->set_passed(false);
  const FinalTimes times =
      FinalTimesOf(*RecordsOf(round, {Timed(1.1), Timed(1.2), wrong}, 1000), round.finalists[2]);
  EXPECT_TRUE(times.default_failed);
  EXPECT_EQ(times.default_seconds, 0);
  EXPECT_EQ(times.finalists, 2u);
}

TEST(RecordsOfTest, OneResultIsNoRound) {
  const absl::Status status = RecordsOf(RoundOfThree(), {Timed(1)}, 1000).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1 results; expected 3"));
}

}  // namespace
}  // namespace mycc
