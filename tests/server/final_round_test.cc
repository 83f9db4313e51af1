// Final rounds that simulated workers hold: what they decide, and what happens when one cannot be held.
#include "server/final_round.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/names.h"
#include "tests/server/fake_server.h"
#include "tests/server/timed.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A job whose trials take times that lie within a few percent of each other, up to its final round.
class FinalsTest : public ::testing::Test {
 protected:
  static constexpr int kTrials = 8;

  // Measures the trials: the n-th candidate takes n permille longer than the first, the default, and those
  // after the fourth six percent more, which is too much for the round; the default may have been timed at
  // another moment.
  void MeasureTrials(const std::string& job, double of_default = 1) {
    FakeWorker worker(&server_, "early");
    for (int i = 0; server_.Progress(job).trials() < kTrials;) {
      const std::vector<v1::Assignment> leased = worker.Lease(1);
      ASSERT_THAT(leased, SizeIs(1));
      for (const v1::Assignment& assignment : leased) {
        ASSERT_THAT(assignment.rivals(), IsEmpty());
        v1::MeasureResult result = Timed(i == 0 ? of_default : (i < 4 ? 1 : 1.06) + 0.001 * i);
        result.mutable_timing()->set_protocol(assignment.protocol());
        result.set_finished_unix_micros(finished_unix_micros_);
        ASSERT_TRUE(worker.Report(assignment, result).ok());
        ++i;
      }
    }
    ASSERT_TRUE(worker.Leave().ok());
  }
  std::string JobInItsFinal() {
    const std::string job = server_.Submit(MakeSpec({kTestWorkload}, kTrials), "the one");
    MeasureTrials(job);
    return job;
  }
  static v1::Assignment LeaseRound(FakeWorker* worker) {
    const std::vector<v1::Assignment> leased = worker->Lease(4);
    EXPECT_THAT(leased, SizeIs(1));
    if (leased.empty()) return {};
    EXPECT_THAT(leased[0].rivals(), SizeIs(3)) << "four lead";
    return leased[0];
  }
  // In turn the last of them is the best by far, on a day on which all are slow.
  static std::vector<v1::MeasureResult> LastWins() {
    return {Timed(2.2), Timed(2.1), Timed(2.3), Timed(2.0)};
  }
  v1::Record Best() {
    v1::BestRequest request;
    request.set_workload_hash(server_.RecordsOf(job_)[0].record.workload_hash());
    request.set_target(kTestTarget);
    const auto best =
        AnswerOf<v1::BestResponse>(&server_, [&](const auto& reply) { server_->Best(request, reply); });
    EXPECT_TRUE(best.ok() && best->records_size() == 1);
    return best->records(0);
  }
  void ExpectSingleTimingsStand(const std::string& why) {
    const v1::JobProgress progress = server_.Progress(job_);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
    EXPECT_THAT(progress.message(), HasSubstr("all trials are measured; no final round of gemm, its single "
                                              "timings stand: " +
                                              why));
    EXPECT_EQ(progress.tasks(0).finalists(), 0u);
    EXPECT_EQ(progress.tasks(0).best_seconds(), 1.0);
    EXPECT_EQ(Best().result().timing().seconds(), 1.0);
    EXPECT_THAT(server_.RecordsOf(job_), SizeIs(kTrials));
    EXPECT_THAT(server_.RecordsOf(job_, /*finals=*/true), IsEmpty());
  }

  int64_t finished_unix_micros_ = 0;  // by the clock of the worker that measures the trials
  FakeServer server_;
  std::string job_ = JobInItsFinal();
};

TEST_F(FinalsTest, DecideByTimesTakenInTurn) {
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server_.Progress(job_).message(), "all trials are measured; 0 of 1 final rounds are over");
  FakeWorker worker(&server_, "w");
  const v1::Assignment round = LeaseRound(&worker);
  EXPECT_NE(round.seed(), 0u);
  EXPECT_EQ(round.protocol(), v1::TIMING_PROTOCOL_WARM);
  ASSERT_TRUE(worker.ReportAll(round, LastWins()).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) server_.Restart();
    const v1::JobProgress progress = server_.Progress(job_);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(progress.message(), "all trials are measured");
    EXPECT_EQ(progress.trials(), kTrials) << "the round is no trial";
    EXPECT_EQ(progress.tasks(0).finalists(), 4u);
    EXPECT_EQ(progress.tasks(0).best_seconds(), 2.0);
    EXPECT_EQ(progress.tasks(0).default_final_seconds(), 2.2) << "the first candidate is the default";
    EXPECT_EQ(progress.tasks(0).best_alone_seconds(), 1.0);
    EXPECT_EQ(progress.tasks(0).first_seconds(), 1.0);
    EXPECT_EQ(Best().trace(), round.rivals(2));
    EXPECT_EQ(Best().result().timing().seconds(), 2.0);
  }
  EXPECT_THAT(server_.RecordsOf(job_), SizeIs(kTrials)) << "nothing is lost";
  EXPECT_THAT(server_.RecordsOf(job_, /*finals=*/true), SizeIs(4));
}

TEST_F(FinalsTest, TheDefaultThatWasTimedInASlowPhaseMayWin) {
  FakeWorker worker(&server_, "w");
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), LastWins()).ok());
  const std::string job = server_.Submit(MakeSpec({kOtherWorkload}, kTrials), "another");
  MeasureTrials(job, /*of_default=*/3.0);
  const std::vector<v1::Assignment> leased = worker.Lease(4);
  ASSERT_THAT(leased, SizeIs(1));
  ASSERT_THAT(leased[0].rivals(), SizeIs(4)) << "four lead, and the default";
  ASSERT_TRUE(worker.ReportAll(leased[0], {Timed(1.1), Timed(1.2), Timed(1.3), Timed(1.4), Timed(1.0)}).ok());
  EXPECT_EQ(server_.Progress(job).tasks(0).best_seconds(), 1.0);
  std::vector<std::string> defaults;
  for (const StoredRecord& stored : server_.RecordsOf(job, /*finals=*/true)) {
    if (stored.record.result().timing().seconds() == 1.0) defaults.push_back(stored.record.trace());
  }
  EXPECT_THAT(defaults, ElementsAre(leased[0].rivals(3)));
}

TEST_F(FinalsTest, ARoundSpeaksAfterTrialsOfAWorkerWhoseClockWasAhead) {
  FakeWorker worker(&server_, "w");
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), LastWins()).ok());
  finished_unix_micros_ = SystemUnixMicros() + int64_t{400} * 86400 * 1000000;
  job_ = server_.Submit(MakeSpec({kOtherWorkload}, kTrials), "another");
  MeasureTrials(job_);
  v1::MeasureResult wrong = Timed(0.5);
  wrong.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  wrong.mutable_verification()->set_passed(false);
  const v1::Assignment round = LeaseRound(&worker);
  ASSERT_TRUE(worker.ReportAll(round, {wrong, Timed(2.1), Timed(2.3), Timed(2.0)}).ok());
  EXPECT_EQ(Best().trace(), round.rivals(2));
  for (const StoredRecord& stored : server_.RecordsOf(job_)) {
    if (stored.record.trace() != round.trace()) continue;
    EXPECT_EQ(stored.superseded, stored.record.result().status() == v1::MEASURE_STATUS_OK)
        << "it was found wrong";
  }
}

TEST_F(FinalsTest, ABannedDefaultIsNotTimedAgain) {
  FakeWorker worker(&server_, "w");
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), LastWins()).ok());
  const std::string job = server_.Submit(MakeSpec({kOtherWorkload}, kTrials), "another");
  {
    FakeWorker early(&server_, "early");
    const std::vector<v1::Assignment> first = early.Lease(1);
    ASSERT_THAT(first, SizeIs(1));
    v1::MeasureResult slow = Timed(3.0);
    slow.mutable_timing()->set_protocol(first[0].protocol());
    ASSERT_TRUE(early.Report(first[0], slow).ok());
    const int64_t record = server_.RecordsOf(job).at(0).id;
    ASSERT_TRUE(server_.log().SetOverride(record, OverrideKind::kBan, "crashes on Sundays").ok());
    ASSERT_TRUE(early.Leave().ok());
  }
  MeasureTrials(job, /*of_default=*/1.0);
  const std::vector<v1::Assignment> leased = worker.Lease(4);
  ASSERT_THAT(leased, SizeIs(1));
  EXPECT_THAT(leased[0].rivals(), SizeIs(3)) << "four lead";
}

TEST_F(FinalsTest, NothingIsDecidedAgain) {
  FakeWorker worker(&server_, "w");
  ASSERT_TRUE(worker
                  .ReportAll(LeaseRound(&worker),
                             {Timed(2.02, 0.1), Timed(2.01, 0.1), Timed(2.03, 0.1), Timed(2.00, 0.1)})
                  .ok());
  // These intervals reach the other four of the first job, which are timed with the leaders once.
  v1::JobSpec spec = MakeSpec({kTestWorkload}, kTrials, /*seed=*/9);
  spec.set_fresh(true);
  int rounds = 0;
  for (const char* name : {"second", "third"}) {
    const std::string job = server_.Submit(spec, name);
    for (std::vector<v1::Assignment> leased; leased = worker.Lease(1), !leased.empty();) {
      rounds += !leased[0].rivals().empty();
      const bool is_round = !leased[0].rivals().empty();
      const std::vector<v1::MeasureResult> slow(1 + static_cast<size_t>(leased[0].rivals_size()),
                                                Timed(is_round ? 3 : 4));
      ASSERT_TRUE(worker.ReportAll(leased[0], slow).ok());
    }
    EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
    job_ = job;
  }
  EXPECT_EQ(rounds, 1);
  for (const bool restarted : {false, true}) {
    if (restarted) server_.Restart();
    const v1::TaskProgress third = server_.Progress(job_).tasks(0);
    EXPECT_TRUE(third.is_earlier_round());
    EXPECT_EQ(third.finalists(), 8u) << "all tied";
    EXPECT_EQ(third.ties(), 7u);
    EXPECT_EQ(third.best_seconds(), 3) << "as they met in the second job, not by itself";
    EXPECT_EQ(third.default_final_seconds(), 3);
    EXPECT_EQ(third.first_seconds(), 4);
  }
}

TEST_F(FinalsTest, TheNextJobsChallengerMeetsThoseOfBefore) {
  FakeWorker worker(&server_, "w");
  const v1::Assignment before = LeaseRound(&worker);
  ASSERT_TRUE(worker.ReportAll(before, LastWins()).ok());
  v1::JobSpec spec = MakeSpec({kTestWorkload}, kTrials, /*seed=*/9);
  spec.set_fresh(true);
  const std::string next = server_.Submit(spec, "next");
  std::string challenger;
  std::vector<v1::Assignment> leased;
  while (leased = worker.Lease(1), !leased.empty() && leased[0].rivals().empty()) {
    const bool is_known =
        leased[0].trace() == before.trace() || std::ranges::count(before.rivals(), leased[0].trace()) > 0;
    const bool challenges = challenger.empty() && !is_known;
    if (challenges) challenger = leased[0].trace();
    ASSERT_TRUE(worker.Report(leased[0], Timed(challenges ? 1.001 : 3.0)).ok());
  }
  ASSERT_THAT(leased, SizeIs(1)) << "its final round";
  EXPECT_EQ(leased[0].trace(), before.rivals(2)) << "the winner stands where the best stood";
  std::vector<v1::MeasureResult> results = {Timed(1.5)};
  for (const std::string& rival : leased[0].rivals())
    results.push_back(Timed(rival == challenger ? 1.4 : 1.6));
  ASSERT_TRUE(worker.ReportAll(leased[0], results).ok());
  EXPECT_EQ(server_.Progress(next).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(Best().trace(), challenger);
}

TEST_F(FinalsTest, WrongFinalistIsNoLongerOffered) {
  FakeWorker worker(&server_, "w");
  const v1::Assignment round = LeaseRound(&worker);
  std::vector<v1::MeasureResult> results = LastWins();
  results[3].set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  results[3].mutable_verification()->set_passed(false);
  ASSERT_TRUE(worker.ReportAll(round, results).ok());
  EXPECT_EQ(server_.Progress(job_).tasks(0).finalists(), 3u);
  EXPECT_EQ(Best().trace(), round.rivals(0));
  EXPECT_EQ(Best().result().timing().seconds(), 2.1);
}

TEST_F(FinalsTest, WorkerDiesInTheRoundAndAnotherHoldsIt) {
  FakeWorker victim(&server_, "victim"), survivor(&server_, "survivor");
  const v1::Assignment round = LeaseRound(&victim);
  EXPECT_THAT(survivor.Lease(4), IsEmpty());
  server_.Wait(11);
  const v1::Assignment again = LeaseRound(&survivor);
  EXPECT_EQ(again.lease().attempt(), 2u);
  ASSERT_TRUE(victim.ReportAll(round, LastWins()).ok());
  EXPECT_THAT(victim.ignored, ElementsAre(round.lease().trial())) << "it is late";
  EXPECT_THAT(server_.RecordsOf(job_, /*finals=*/true), IsEmpty());
  ASSERT_TRUE(survivor.ReportAll(again, LastWins()).ok());
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(Best().trace(), again.rivals(2));
}

TEST_F(FinalsTest, WorkerThatIsStartedAgainHoldsItAgain) {
  FakeWorker worker(&server_, "w");
  LeaseRound(&worker);
  worker.Register();
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), LastWins()).ok());
  EXPECT_EQ(Best().result().timing().seconds(), 2.0);
}

TEST_F(FinalsTest, WorkersThatDieOfItLeaveTheSingleTimings) {
  for (int i = 0; i < 3; ++i) {
    FakeWorker victim(&server_, "victim" + std::to_string(i));
    LeaseRound(&victim);
    server_.Wait(11);
  }
  ExpectSingleTimingsStand("quarantined: 3 workers were lost while they measured it");
}

TEST_F(FinalsTest, RoundThatCrashesIsNobodysFault) {
  FakeWorker worker(&server_, "w");
  v1::MeasureResult crashed;
  crashed.set_status(v1::MEASURE_STATUS_RUN_ERROR);
  crashed.set_error("the run died of SIGSEGV");
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), {crashed}).ok());
  ExpectSingleTimingsStand("run_error: the run died of SIGSEGV");
}

TEST_F(FinalsTest, WorkerOfAnOlderVersionTimesOneAndThatIsNoRound) {
  FakeWorker worker(&server_, "w");
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), {Timed(0.5)}).ok());
  ExpectSingleTimingsStand("it has 1 results; expected 4");
}

TEST_F(FinalsTest, ResultsThatCannotBeKeptLeaveTheSingleTimings) {
  FakeWorker worker(&server_, "w");
  std::vector<v1::MeasureResult> results = LastWins();
  results[2].mutable_timing()->set_seconds(-1);
  ASSERT_TRUE(worker.ReportAll(LeaseRound(&worker), results).ok());
  ExpectSingleTimingsStand("its result was refused: it took -1 s");
}

TEST_F(FinalsTest, WithoutAWorkerTheSingleTimingsStandAfterAWhile) {
  server_.Wait(59);
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_RUNNING);
  server_.Wait(2);
  ExpectSingleTimingsStand("no worker took it in 60 s");
}

TEST_F(FinalsTest, SlowRoundIsWaitedFor) {
  FakeWorker worker(&server_, "w");
  const v1::Assignment round = LeaseRound(&worker);
  for (int i = 0; i < 30; ++i) {
    server_.Wait(5);
    ASSERT_TRUE(worker.Beat().ok());
  }
  ASSERT_TRUE(worker.ReportAll(round, LastWins()).ok());
  EXPECT_THAT(worker.ignored, IsEmpty());
  EXPECT_EQ(Best().result().timing().seconds(), 2.0);
}

TEST_F(FinalsTest, CancelLeavesTheSingleTimingsAtOnce) {
  FakeWorker worker(&server_, "w");
  const v1::Assignment round = LeaseRound(&worker);
  ASSERT_TRUE(server_.Cancel(job_).ok());
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Best().result().timing().seconds(), 1.0);
  EXPECT_TRUE(worker.ReportAll(round, LastWins()).ok());
  EXPECT_THAT(worker.ignored, ElementsAre(round.lease().trial()));
}

TEST_F(FinalsTest, ServerRestartInTheRoundBeginsItAnew) {
  FakeWorker worker(&server_, "w");
  const v1::Assignment before = LeaseRound(&worker);
  server_.Restart();
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(worker.RegisterAgain().lost(), SizeIs(1));
  ASSERT_TRUE(worker.ReportAll(before, LastWins()).ok());
  EXPECT_THAT(worker.ignored, ElementsAre(before.lease().trial()));
  const v1::Assignment again = LeaseRound(&worker);
  EXPECT_EQ(again.trace(), before.trace());
  ASSERT_TRUE(worker.ReportAll(again, LastWins()).ok());
  EXPECT_EQ(server_.Progress(job_).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(Best().trace(), again.rivals(2));
}

// One round of two tasks is over when the server dies: the other is held, and the first is not held again.
TEST(FinalsOfTwoTasksTest, ServerRestartHoldsWhatWasNotHeld) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 6), "two");
  std::vector<v1::Assignment> rounds;
  while (rounds.size() < 2) {
    for (const v1::Assignment& assignment : worker.Lease(1)) {
      if (assignment.rivals().empty()) {
        ASSERT_TRUE(worker.Report(assignment, Timed(1)).ok());
      } else {
        rounds.push_back(assignment);
      }
    }
  }
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("0 of 2 final rounds are over"));
  const auto all_equal = [](const v1::Assignment& round) {
    return std::vector<v1::MeasureResult>(1 + static_cast<size_t>(round.rivals_size()), Timed(1));
  };
  ASSERT_TRUE(worker.ReportAll(rounds[0], all_equal(rounds[0])).ok());
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("1 of 2 final rounds are over"));
  server.Restart();
  worker.Register();
  const std::vector<v1::Assignment> left = worker.Lease(4);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].workload(), rounds[1].workload());
  ASSERT_TRUE(worker.ReportAll(left[0], all_equal(left[0])).ok());
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_GT(server.Progress(job).tasks(0).finalists(), 1u);
  EXPECT_GT(server.Progress(job).tasks(1).finalists(), 1u);
}

TEST(FinalsOfTwoTasksTest, ClearWinnerNeedsNoRound) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  double seconds = 1;
  for (std::vector<v1::Assignment> leased; leased = worker.Lease(1), !leased.empty();) {
    EXPECT_THAT(leased[0].rivals(), IsEmpty());
    ASSERT_TRUE(worker.Report(leased[0], Timed(seconds *= 5)).ok());
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(job).message(), "all trials are measured");
}

}  // namespace
}  // namespace mycc
