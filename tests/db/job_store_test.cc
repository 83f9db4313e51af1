// Jobs, generations and trials in the log, across reopening and damage.
#include "db/job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/names.h"
#include "tests/db/job_store_fixture.h"

namespace mycc {
namespace {

using testing::HasSubstr;

TEST_F(JobStoreTest, AJobComesBackAsItWasMade) {
  MakeJob();
  Open();
  auto job = jobs_->GetJob(job_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner, "ann");
  EXPECT_EQ(job->spec, "spec");
  EXPECT_EQ(job->state, JobState::kRunning);
  EXPECT_GE(job->created_unix_micros, 1000);
  auto tasks = jobs_->LoadTasks(job_);
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ((*tasks)[1].index, 1u);
  EXPECT_EQ((*tasks)[1].key.workload, WorkloadText(65));
  EXPECT_EQ((*tasks)[1].key.workload_name, "layer65");
  EXPECT_EQ((*tasks)[1].key.target, kTarget);
  EXPECT_EQ((*tasks)[1].spec, std::string("spec\0of a task", 14));
  EXPECT_FALSE((*tasks)[1].done);
}

TEST_F(JobStoreTest, CreatingTheSameJobTwiceChangesNothing) {
  MakeJob();
  MakeJob();
  EXPECT_EQ(jobs_->LoadTasks(job_)->size(), 2u);
  EXPECT_EQ(jobs_->CreateJob({.id = job_, .spec = "another"}, {}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(jobs_->CreateJob({.id = "my job"}, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobStoreTest, JobsAreListedByAgeAndState) {
  MakeJob();
  ASSERT_TRUE(jobs_->CreateJob({.id = JobId(1)}, {}).ok());
  ASSERT_TRUE(jobs_->SetJobState(JobId(1), JobState::kFailed, "no worker fits").ok());
  auto all = jobs_->ListJobs();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].id, job_);
  EXPECT_EQ((*all)[1].message, "no worker fits");
  EXPECT_EQ(jobs_->ListJobs({JobState::kRunning})->size(), 1u);
  EXPECT_EQ(jobs_->SetJobState(JobId(2), JobState::kDone, "").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(jobs_->GetJob(JobId(2)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, ASubmissionHasItsJobsTheNewestFirst) {
  for (const int job : {1, 2, 3}) {
    ASSERT_TRUE(jobs_->CreateJob({.id = JobId(0, job), .submission = job == 2 ? "theirs" : "mine"}, {}).ok());
  }
  ASSERT_TRUE(jobs_->CreateJob({.id = JobId(4)}, {}).ok()) << "of an older build, or of nobody";
  Open();
  const auto mine = jobs_->JobsOf("mine");
  ASSERT_TRUE(mine.ok()) << mine.status();
  ASSERT_EQ(mine->size(), 2u);
  EXPECT_EQ((*mine)[0].id, JobId(0, 3));
  EXPECT_EQ((*mine)[1].id, JobId(0, 1));
  EXPECT_EQ((*mine)[1].submission, "mine");
  EXPECT_EQ(jobs_->JobsOf("")->size(), 0u);
}

TEST_F(JobStoreTest, AJobEndsOnce) {
  MakeJob();
  ASSERT_TRUE(jobs_->SetJobState(job_, JobState::kCancelled, "cancelled").ok());
  const absl::Status again = jobs_->SetJobState(job_, JobState::kDone, "all trials are measured");
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition) << again;
  EXPECT_EQ(jobs_->GetJob(job_)->state, JobState::kCancelled);
  EXPECT_EQ(jobs_->GetJob(job_)->message, "cancelled");
}

TEST_F(JobStoreTest, ACancelledJobIsTakenUpAgainWithItsTrials) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  ASSERT_TRUE(Finish(Name(0, 0, 0), Lease(Name(0, 0, 0))).ok());
  const uint32_t attempt = Lease(Name(0, 0, 1));
  EXPECT_EQ(jobs_->ReopenJob(job_).code(), absl::StatusCode::kFailedPrecondition) << "it runs";
  ASSERT_TRUE(jobs_->SetJobState(job_, JobState::kCancelled, "cancelled").ok());
  Open();
  ASSERT_TRUE(jobs_->ReopenJob(job_).ok());
  EXPECT_EQ(jobs_->GetJob(job_)->state, JobState::kRunning);
  EXPECT_EQ(jobs_->GetJob(job_)->message, "");
  const auto trials = jobs_->LoadTrials(job_, 0);
  EXPECT_EQ((*trials)[0].state, TrialState::kFinished);
  EXPECT_EQ((*trials)[1].state, TrialState::kQueued);
  EXPECT_EQ((*trials)[1].attempt, attempt) << "the next lease fences it off";
  EXPECT_EQ((*trials)[2].state, TrialState::kQueued);
  ASSERT_TRUE(jobs_->SetJobState(job_, JobState::kDone, "").ok());
  EXPECT_EQ(jobs_->ReopenJob(job_).code(), absl::StatusCode::kFailedPrecondition) << "it is done";
  EXPECT_EQ(jobs_->ReopenJob(JobId(77)).code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, AGenerationAndItsStateAreOne) {
  MakeJob();
  const std::string state("st\0ate", 6);
  ASSERT_TRUE(AddGeneration(1, 0, 2, state).ok());
  ASSERT_TRUE(AddGeneration(0, 0, 1, "other").ok());
  ASSERT_TRUE(AddGeneration(1, 1, 1, "later").ok());
  EXPECT_EQ(AddGeneration(1, 1, 2, "again").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AddGeneration(7, 0, 1).code(), absl::StatusCode::kNotFound);
  Open();
  auto rounds = jobs_->LoadGenerations(job_);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  ASSERT_EQ(rounds->size(), 3u);
  EXPECT_EQ((*rounds)[0].state, state);
  EXPECT_EQ((*rounds)[0].elapsed_seconds, 2.5);
  EXPECT_EQ((*rounds)[1].task, 0u);
  EXPECT_EQ((*rounds)[2].task, 1u);
  EXPECT_EQ((*rounds)[2].generation, 1u);
  EXPECT_EQ((*rounds)[2].proposal, 2u);
  EXPECT_EQ(jobs_->LoadGenerations(JobId(2))->size(), 0u);
}

TEST_F(JobStoreTest, JobsAreListedByTheirSummariesNewestFirst) {
  MakeJob();
  for (int id = 1; id <= 3; ++id) ASSERT_TRUE(jobs_->CreateJob({.id = JobId(id)}, {}).ok());
  ASSERT_TRUE(jobs_->SetJobState(JobId(2), JobState::kDone, "well").ok());
  ASSERT_TRUE(jobs_->SetSummary(JobId(2), std::string("su\0m", 4)).ok());
  EXPECT_EQ(jobs_->SetSummary(JobId(7), "").code(), absl::StatusCode::kNotFound);
  auto newest = jobs_->ListSummaries(2);
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_EQ((*newest)[0].id, JobId(3));
  EXPECT_EQ((*newest)[0].summary, "");
  EXPECT_EQ((*newest)[1].state, JobState::kDone);
  EXPECT_EQ((*newest)[1].message, "well");
  EXPECT_EQ((*newest)[1].summary, std::string("su\0m", 4));
  EXPECT_EQ(jobs_->ListSummaries(0)->size(), 4u);
}

TEST_F(JobStoreTest, TrialsComeBackInCandidateOrderWithTheirResults) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  ASSERT_TRUE(AddGeneration(0, 1, 2).ok());
  const std::string name = Name(0, 0, 1);
  ASSERT_TRUE(Finish(name, Lease(name), {.seconds = 5e-3}).ok());
  const uint32_t attempt = Lease(Name(0, 1, 0), "worker-b");
  Open();
  auto trials = jobs_->LoadTrials(job_, 0);
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*trials)[i].name, Name(0, i / 3, i % 3));
  const Trial& finished = (*trials)[1];
  EXPECT_EQ(finished.state, TrialState::kFinished);
  EXPECT_EQ(finished.trace, "v1\nsplit(i, 0, 1)\n");
  EXPECT_EQ(finished.provenance.strategy(), "random");
  EXPECT_EQ(finished.provenance.predicted_score(), 0.5);
  ASSERT_TRUE(finished.result.has_value());
  EXPECT_TRUE(SameMessage(*finished.result, MakeResult({.seconds = 5e-3})));
  const Trial& leased = (*trials)[3];
  EXPECT_EQ(leased.state, TrialState::kLeased);
  EXPECT_EQ(leased.worker, "worker-b");
  EXPECT_EQ(leased.attempt, attempt);
  EXPECT_GE(leased.leased_unix_micros, 1000);
  EXPECT_EQ((*trials)[4].state, TrialState::kQueued);
  EXPECT_EQ(jobs_->LoadTrials(job_, 0, 1)->size(), 2u);
  EXPECT_EQ(jobs_->LoadTrials(job_, 5).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, AFinishedTrialIsARecordWithItsWholeProvenance) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(1, 0, 4).ok());
  const std::string name = Name(1, 0, 3);
  auto appended = Finish(name, Lease(name), {.seconds = 5e-3});
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_TRUE(appended->is_new);
  const v1::Record record = log_->Get(appended->id)->record;
  EXPECT_EQ(record.trial(), name);
  EXPECT_EQ(record.workload(), WorkloadText(65));
  EXPECT_EQ(record.workload_hash(), WorkloadHashOf(65));
  EXPECT_EQ(record.workload_name(), "layer65");
  EXPECT_EQ(record.target(), kTarget);
  EXPECT_EQ(record.trace(), "v1\nsplit(i, 0, 3)\n");
  EXPECT_EQ(record.provenance().job(), job_);
  EXPECT_EQ(record.provenance().task(), 1u);
  EXPECT_EQ(record.provenance().index(), 3u);
  EXPECT_EQ(record.provenance().seed(), 17u);
  EXPECT_EQ(record.attempt(), 1u);
  EXPECT_GT(record.created_unix_micros(), 0);
  EXPECT_GT(record.recorded_unix_micros(), record.created_unix_micros());
  EXPECT_EQ(log_->Best(KeyOf({.shape = 65}), v1::TIMING_PROTOCOL_WARM)->id, appended->id);
  EXPECT_EQ(jobs_->GetTrial(name)->record_id, appended->id);
}

TEST_F(JobStoreTest, OnlyQueuedTrialsAreLeasedAndAllOrNone) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  EXPECT_EQ(Lease(Name(0, 0, 0)), 1u);
  const absl::Status status = jobs_->LeaseTrials({Name(0, 0, 1), Name(0, 0, 0)}, "w").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not queued"));
  EXPECT_EQ(jobs_->GetTrial(Name(0, 0, 1))->state, TrialState::kQueued);
  EXPECT_EQ(jobs_->LeaseTrials({Name(0, 0, 1), Name(0, 0, 2)}, "w")->size(), 2u);
  EXPECT_EQ(jobs_->LeaseTrials({Name(0, 9, 9)}, "w").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(jobs_->LeaseTrials({"nonsense"}, "w").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, LateReportIsIgnored) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  const std::string name = Name(0, 0, 0);
  EXPECT_EQ(Lease(name), 1u);
  ASSERT_TRUE(
      jobs_->RequeueTrial({.trial = name, .attempt = 1, .status = v1::MEASURE_STATUS_WORKER_LOST}).ok());
  EXPECT_EQ(Lease(name, "worker-b"), 2u);
  EXPECT_EQ(Finish(name, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->List({})->size(), 0u);
  EXPECT_TRUE(Finish(name, 2)->is_new);
  auto late = Finish(name, 1);  // finished trials answer everyone, so that a worker can forget them
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE(late->is_new);
  EXPECT_EQ(log_->List({})->size(), 1u);
}

TEST_F(JobStoreTest, AReportRepeatedIsOneRecord) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  const std::string name = Name(0, 0, 0);
  const uint32_t attempt = Lease(name);
  auto first = Finish(name, attempt);
  Open();
  auto second = Finish(name, attempt, {.seconds = 1e-6});
  EXPECT_EQ(first->id, second->id);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(log_->Get(first->id)->record.result().timing().seconds(), 1e-3);
}

TEST_F(JobStoreTest, ALeaseHeldAcrossARestartIsReportedAndCounts) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  const std::string name = Name(0, 0, 0);
  const uint32_t attempt = Lease(name);
  Open();
  EXPECT_TRUE(Finish(name, attempt)->is_new);
}

TEST_F(JobStoreTest, ALeaseGivenUpButNotGivenAwayIsStillHeard) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  const std::string name = Name(0, 0, 0);
  const uint32_t attempt = Lease(name);
  ASSERT_TRUE(
      jobs_->RequeueTrial({.trial = name, .attempt = attempt, .status = v1::MEASURE_STATUS_WORKER_LOST})
          .ok());
  EXPECT_TRUE(Finish(name, attempt)->is_new);  // the work is done: nobody needs to do it again
  EXPECT_EQ(jobs_->LeaseTrials({name}, "w").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobStoreTest, ANeverLeasedTrialCannotBeFinished) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  EXPECT_EQ(Finish(Name(0, 0, 0), 0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Finish(Name(0, 0, 0), 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Finish("nonsense", 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, OneBadReportDoesNotHoldUpTheOthers) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  for (int i = 0; i < 3; ++i) Lease(Name(0, 0, i));
  v1::MeasureResult bad = MakeResult({});
  bad.clear_status();
  auto answers = jobs_->FinishTrials({{Name(0, 0, 0), 1, MakeResult({})},
                                      {Name(0, 0, 1), 1, bad},
                                      {Name(0, 0, 2), 1, MakeResult({.index = 2})}});
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE((*answers)[0].ok());
  EXPECT_EQ((*answers)[1].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*answers)[2].ok());
  EXPECT_EQ(log_->List({})->size(), 2u);
  EXPECT_EQ(jobs_->GetTrial(Name(0, 0, 1))->state, TrialState::kLeased);
}

TEST_F(JobStoreTest, LostAttemptsAreCountedWithTheirEvidence) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 1).ok());
  const std::string name = Name(0, 0, 0);
  for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(Lease(name, absl::StrCat("worker-", attempt)), attempt);
    auto lost = jobs_->RequeueTrial({.trial = name,
                                     .attempt = attempt,
                                     .status = v1::MEASURE_STATUS_WORKER_LOST,
                                     .evidence = absl::StrCat("gone ", attempt)});
    ASSERT_TRUE(lost.ok()) << lost.status();
    EXPECT_EQ(*lost, attempt);
  }
  EXPECT_EQ(Lease(name), 4u);
  EXPECT_EQ(*jobs_->RequeueTrial({.trial = name, .attempt = 4}), 3u);  // handed back: not counted
  Open();
  EXPECT_EQ(jobs_->GetTrial(name)->lost_attempts, 3u);
  auto attempts = jobs_->LostAttempts(name);
  ASSERT_EQ(attempts->size(), 3u);
  EXPECT_EQ((*attempts)[1].worker, "worker-2");
  EXPECT_EQ((*attempts)[1].evidence, "gone 2");
  EXPECT_EQ((*attempts)[1].status, v1::MEASURE_STATUS_WORKER_LOST);
  EXPECT_EQ(jobs_->RequeueTrial({.trial = name, .attempt = 4}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobStoreTest, AnEndedJobDropsItsOpenTrialsButHearsTheLastResults) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  const uint32_t attempt = Lease(Name(0, 0, 0));
  const uint32_t other = Lease(Name(0, 0, 1));
  ASSERT_TRUE(Finish(Name(0, 0, 0), attempt).ok());
  ASSERT_TRUE(jobs_->SetJobState(job_, JobState::kCancelled, "by ann").ok());
  EXPECT_EQ(jobs_->GetTrial(Name(0, 0, 0))->state, TrialState::kFinished);
  EXPECT_EQ(jobs_->GetTrial(Name(0, 0, 1))->state, TrialState::kDropped);
  EXPECT_EQ(jobs_->GetTrial(Name(0, 0, 2))->state, TrialState::kDropped);
  EXPECT_FALSE(jobs_->LeaseTrials({Name(0, 0, 2)}, "w").ok());
  EXPECT_TRUE(Finish(Name(0, 0, 1), other, {.index = 1})->is_new);  // measured is measured
  EXPECT_EQ(log_->List({})->size(), 2u);
}

TEST_F(JobStoreTest, ATaskThatIsDoneSaysWhy) {
  MakeJob();
  ASSERT_TRUE(jobs_->FinishTask(job_, 1, "found nothing valid in 64 trials").ok());
  Open();
  auto tasks = jobs_->LoadTasks(job_);
  EXPECT_FALSE((*tasks)[0].done);
  EXPECT_TRUE((*tasks)[1].done);
  EXPECT_EQ((*tasks)[1].outcome, "found nothing valid in 64 trials");
  EXPECT_EQ(jobs_->FinishTask(job_, 2, "").code(), absl::StatusCode::kNotFound);
}

TEST_F(JobStoreTest, LeasingAndFinishingScanNoTrials) {
  MakeJob();
  ASSERT_TRUE(AddGeneration(0, 0, 3).ok());
  const std::string name = Name(0, 0, 0);
  ASSERT_TRUE(Finish(name, Lease(name)).ok());
  Lease(Name(0, 0, 1));
  ASSERT_TRUE(jobs_->RequeueTrial({.trial = Name(0, 0, 1), .attempt = 1}).ok());
  ASSERT_TRUE(jobs_->SetJobState(job_, JobState::kDone, "").ok());
  ASSERT_EQ(jobs_->ListSummaries(1)->size(), 1u);
  auto plans = log_->database()->QueryPlans();
  for (const std::string& plan : *plans) {
    for (const char* table : {"trials", " i", " r", "records", "g"}) {
      EXPECT_FALSE(absl::StrContains(plan, absl::StrCat("SCAN ", table, ";"))) << plan;
    }
  }
}

}  // namespace
}  // namespace mycc
