// `mycc-tune log verify`, with a machine that says what the test likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "db/tuning_log.h"
#include "mycc_tune/log_commands.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

// The record's result as a machine of now gives it: `seconds` in no final round, with the record's code where
// `digest` is empty.
v1::MeasureResult TimedNow(const v1::Record& record, double seconds, const std::string& digest) {
  v1::MeasureResult result = record.result();
  result.mutable_timing()->clear_rank_seconds();
  result.mutable_timing()->clear_final_round();
  result.mutable_timing()->set_seconds(seconds);
  if (!digest.empty()) result.set_code_digest(digest);
  return result;
}

class LogVerifyTest : public testing::Test {
 protected:
  std::string Verify(const Remeasure& remeasure, absl::StatusCode expected) {
    std::ostringstream out;
    const absl::Status status = LogVerifyCommand({.log = log_, .filter = {}}, remeasure, out);
    EXPECT_EQ(status.code(), expected) << status;
    return out.str();
  }

  TempDir directory_;
  const std::string log_ = MakeMixedLog(directory_, "tuning.db");
};

TEST_F(LogVerifyTest, MeasuresTheBestRecordsAgain) {
  std::vector<std::string> measured;
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        measured.push_back(record.trial());
        v1::MeasureResult result = record.result();
        result.mutable_timing()->set_seconds(1.5e-3);
        result.set_code_digest("new digest");
        return result;
      },
      absl::StatusCode::kOk);
  EXPECT_EQ(measured,
            (std::vector<std::string>{MakeRecord({.index = 0}).trial(), MakeRecord({.index = 4}).trial()}));
  EXPECT_THAT(
      text,
      HasSubstr(
          "record 1 of add_one: ok, 1.500 ms (was 1.000 ms), other code than before, kept as record 6"));
  EXPECT_THAT(text, HasSubstr("2 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  auto best = (*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM);
  EXPECT_EQ(best->id, 6);
  EXPECT_EQ(best->record.result().code_digest(), "new digest");
  EXPECT_TRUE((*log)->Get(1)->superseded);
}

TEST_F(LogVerifyTest, GoesOnUntilTheBestIsARecordOfNow) {
  // All code changed, and what was the best became the slowest.
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        v1::MeasureResult result = record.result();
        const bool was_best = record.trial() == MakeRecord({.index = 0}).trial();
        result.mutable_timing()->set_seconds(was_best ? 1 : result.timing().seconds());
        result.set_code_digest("new digest");
        return result;
      },
      absl::StatusCode::kOk);
  EXPECT_THAT(text, HasSubstr("2 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->record.result().code_digest(), "new digest");
}

// The order that a final round has found outlives a time that is taken alone, as long as the code is the
// same.
TEST_F(LogVerifyTest, KeepsTheOrderOfAFinalRound) {
  {
    auto log = TuningLog::Open(log_, OpenMode::kWrite);
    ASSERT_TRUE((*log)
                    ->Append({MakeRecord({.index = 10, .seconds = 2e-3, .rank_seconds = 0.8e-3}),
                              MakeRecord({.index = 11, .seconds = 2.1e-3, .rank_seconds = 0.9e-3})})
                    .ok());
  }
  const auto verify = [&](const std::string& digest) {
    return Verify(
        [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
          return TimedNow(record, 3e-3, digest);
        },
        absl::StatusCode::kOk);
  };
  EXPECT_THAT(verify(""), HasSubstr("ok, 3.000 ms (was 2.000 ms), the same code"));
  const auto best = [&] {
    return TuningLog::Open(log_, OpenMode::kRead).value()->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->record;
  };
  EXPECT_EQ(best().trace(), MakeRecord({.index = 10}).trace());
  EXPECT_EQ(best().result().timing().seconds(), 3e-3);
  EXPECT_EQ(best().result().timing().rank_seconds(), 0.8e-3);
  // The round said nothing of other code: all that rank before it are measured, until one of now is the best.
  verify("new digest");
  EXPECT_EQ(best().result().code_digest(), "new digest");
  EXPECT_EQ(best().result().timing().seconds(), 3e-3);
}

// A default schedule that its job found faster than what ranks first stands before it with its time in that
// job, although a final round ranks it behind. On a machine that is slower now it stands there still.
TEST_F(LogVerifyTest, EndsWhereADefaultStandsFirstByItsTimeInItsJob) {
  for (const std::string digest : {"", "new digest"}) {
    const std::string path = MakeMixedLog(directory_, "with_default" + digest + ".db");
    const auto record = [](int index, const std::string& trace, double seconds, double rank_seconds,
                           const std::string& origin) {
      v1::Record made = MakeRecord(
          {.index = index, .shape = 128, .seconds = seconds, .trace = trace, .rank_seconds = rank_seconds});
      made.mutable_provenance()->set_strategy("evolutionary/" + origin);
      made.mutable_result()->set_code_digest("code of " + trace);
      return made;
    };
    {
      auto log = TuningLog::Open(path, OpenMode::kWrite);
      ASSERT_TRUE((*log)
                      ->Append({record(20, "v1\nby_default", 1.0e-3, 0, "default"),
                                record(21, "v1\nother", 1.2e-3, 0, "mutation"),
                                record(22, "v1\nby_default", 1.5e-3, 1.5e-3, "default")})
                      .ok());
      ASSERT_EQ((*log)->Best(KeyOf({.shape = 128}), v1::TIMING_PROTOCOL_WARM)->record.trace(),
                "v1\nby_default")
          << "the case that is tested";
    }
    int calls = 0;
    std::ostringstream out;
    const Remeasure slower = [&](const v1::Record& old) -> absl::StatusOr<v1::MeasureResult> {
      if (++calls > 20) return absl::InternalError("it goes on and on");
      return TimedNow(old, 2e-3, digest);
    };
    EXPECT_TRUE(LogVerifyCommand({.log = path, .filter = {}}, slower, out).ok()) << out.str();
    EXPECT_LE(calls, 6) << out.str();
    const StoredRecord best = TuningLog::Open(path, OpenMode::kRead)
                                  .value()
                                  ->Best(KeyOf({.shape = 128}), v1::TIMING_PROTOCOL_WARM)
                                  .value();
    if (!digest.empty()) {
      EXPECT_EQ(best.record.result().code_digest(), digest) << out.str();
    }
  }
}

// A worker's clock that was 400 days ahead decides nothing.
TEST_F(LogVerifyTest, SpeaksAgainstARecordWhoseWorkersClockWasAhead) {
  constexpr int64_t kAhead = int64_t{400} * 86400 * 1000000;
  {
    auto log = TuningLog::Open(log_, OpenMode::kWrite);
    ASSERT_TRUE(
        (*log)
            ->Append({MakeRecord({.index = 20, .seconds = 1e-5, .finished = SystemUnixMicros() + kAhead})})
            .ok());
  }
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        if (record.result().timing().seconds() != 1e-5) return record.result();
        return MakeResult({.status = v1::MEASURE_STATUS_WRONG_RESULT, .finished = SystemUnixMicros()});
      },
      absl::StatusCode::kOk);
  EXPECT_THAT(text, HasSubstr("record 6 of add_one: wrong_result: line 1"));
  EXPECT_THAT(text, HasSubstr("2 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_TRUE((*log)->Get(6)->superseded);
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->record.trace(),
            MakeRecord({.index = 0}).trace());
}

TEST_F(LogVerifyTest, LeavesRecordsOfOtherMachinesAlone) {
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        if (record.workload_hash() == WorkloadHashOf(65))
          return absl::FailedPreconditionError("cannot run it");
        return record.result();
      },
      absl::StatusCode::kOk);
  EXPECT_THAT(text, HasSubstr("record 5 of add_one: not measured: cannot run it"));
  EXPECT_THAT(text, HasSubstr("1 of 1 best records confirmed, and 1 for other machines"));
}

TEST_F(LogVerifyTest, OfNothingFails) {
  std::ostringstream out;
  const absl::Status status =
      LogVerifyCommand({.log = log_, .filter = {.workload_name = "nosuch"}}, nullptr, out);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no ok record that matches"));
  EXPECT_EQ(out.str(), "");
}

TEST_F(LogVerifyTest, DoesNotConfirmWhatCannotBeBuilt) {
  const std::string text = Verify(
      [&](const v1::Record&) -> absl::StatusOr<v1::MeasureResult> {
        return MakeResult({.status = v1::MEASURE_STATUS_BUILD_ERROR});
      },
      absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(text, HasSubstr("record 1 of add_one: build_error"));
  EXPECT_THAT(text, HasSubstr("0 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->id, 1) << "another build can";
  EXPECT_EQ((*log)->List({})->size(), 5u) << "and a second verify would add nothing either";
}

TEST_F(LogVerifyTest, GoesOnBehindWhatCannotBeBuiltHere) {
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        if (record.trial() == MakeRecord({.index = 2}).trial()) return record.result();
        return record.workload_hash() == WorkloadHashOf(65)
                   ? record.result()
                   : MakeResult({.status = v1::MEASURE_STATUS_BUILD_ERROR});
      },
      absl::StatusCode::kOk);
  EXPECT_THAT(text,
              HasSubstr(", not kept: `mycc compile` passes over it here, and `log ban` takes it out of the "
                        "ranking\nrecord 2"));
  EXPECT_THAT(text, HasSubstr("record 3 of add_one: ok, 3.000 ms (was 3.000 ms), the same code, kept"));
  EXPECT_THAT(text, HasSubstr("2 of 2 best records confirmed"));
}

TEST_F(LogVerifyTest, TakesAWrongRecordOutOfTheRanking) {
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        if (record.workload_hash() == WorkloadHashOf(65)) return absl::UnavailableError("no worker");
        v1::MeasureResult result = MakeResult({.status = v1::MEASURE_STATUS_WRONG_RESULT});
        return result;
      },
      absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(text, HasSubstr("record 1 of add_one: wrong_result: line 1"));
  EXPECT_THAT(text, HasSubstr("record 2 of add_one: wrong_result: line 1")) << "it was the best then";
  EXPECT_THAT(text, HasSubstr("record 5 of add_one: not measured: no worker"));
  EXPECT_THAT(text, HasSubstr("0 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_TRUE(absl::IsNotFound((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).status()));
  // Nothing was said about this one.
  EXPECT_EQ((*log)->Best(KeyOf({.shape = 65}), v1::TIMING_PROTOCOL_COLD)->id, 5);
}

// Every kernel crashes on a machine that is broken.
TEST_F(LogVerifyTest, KeepsNoCrashWhereNoKernelRuns) {
  {
    auto log = TuningLog::Open(log_, OpenMode::kWrite);
    ASSERT_TRUE((*log)->Append({MakeRecord({.index = 10}), MakeRecord({.index = 11})}).ok());
  }
  const auto rank = [&] {
    std::vector<int64_t> ids;
    auto log = TuningLog::Open(log_, OpenMode::kRead);
    const std::vector<StoredRecord> ranked = (*log)->TopK(KeyOf({}), v1::TIMING_PROTOCOL_WARM, 9).value();
    for (const StoredRecord& record : ranked) ids.push_back(record.id);
    return ids;
  };
  const std::vector<int64_t> before = rank();
  ASSERT_EQ(before.size(), 5u);
  const std::string text = Verify(
      [&](const v1::Record&) -> absl::StatusOr<v1::MeasureResult> {
        return MakeResult({.status = v1::MEASURE_STATUS_RUN_ERROR});
      },
      absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(text, HasSubstr("not kept before another kernel has run here"));
  EXPECT_THAT(text, HasSubstr("0 of 2 best records confirmed"));
  EXPECT_THAT(text, HasSubstr("no kernel has run here and 4 crashed, which may be this machine's fault"));
  EXPECT_EQ(rank(), before);
}

TEST_F(LogVerifyTest, KeepsACrashOnceAnotherKernelHasRun) {
  int calls = 0;
  const std::string text = Verify(
      [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
        return ++calls == 1 ? MakeResult({.status = v1::MEASURE_STATUS_RUN_ERROR}) : record.result();
      },
      absl::StatusCode::kOk);
  EXPECT_THAT(text, HasSubstr("the crash of record 1 is kept as record 7"));
  EXPECT_THAT(text, HasSubstr("2 of 2 best records confirmed"));
  auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_TRUE((*log)->Get(1)->superseded);
  EXPECT_EQ((*log)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->id, 6);
}

}  // namespace
}  // namespace mycc
