// A test with a log of its own that keeps jobs.
#pragma once

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {

class JobStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  // Closes and opens again: what a restart of the server sees.
  void Open() {
    jobs_.reset();
    log_.reset();
    auto opened = TuningLog::Open(directory_ / "tuning.db", OpenMode::kServe, [this] { return now_++; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
    jobs_ = std::make_unique<JobStore>(log_.get());
  }

  static Task TaskOf(int shape) {
    const v1::Record sample = MakeRecord({.shape = shape});
    Task task;
    task.key = {sample.workload(), sample.workload_hash(), sample.shape_erased_hash(),
                absl::StrCat("layer", shape), kTarget};
    task.spec = std::string("spec\0of a task", 14);
    return task;
  }

  void MakeJob() {
    ASSERT_TRUE(
        jobs_->CreateJob({.id = job_, .owner = "ann", .spec = "spec"}, {TaskOf(64), TaskOf(65)}).ok());
  }

  absl::Status AddGeneration(uint32_t task, uint32_t number, int size, const std::string& state = "state") {
    Generation generation{.job = job_,
                          .task = task,
                          .generation = number,
                          .proposal = proposals_++,
                          .elapsed_seconds = 2.5,
                          .state = state,
                          .trials = {}};
    for (int i = 0; i < size; ++i) {
      v1::Provenance provenance;
      provenance.set_strategy("random");
      provenance.set_seed(17);
      provenance.set_predicted_score(0.5 * i);
      generation.trials.push_back({absl::StrCat("v1\nsplit(i, ", number, ", ", i, ")\n"), provenance});
    }
    return jobs_->AddGeneration(generation);
  }

  std::string Name(uint32_t task, uint32_t generation, uint32_t index) {
    return TrialName({job_, task, generation, index});
  }
  uint32_t Lease(const std::string& name, const std::string& worker = "worker-a") {
    auto attempts = jobs_->LeaseTrials({name}, worker);
    EXPECT_TRUE(attempts.ok()) << attempts.status();
    return attempts.ok() ? (*attempts)[0] : 0;
  }
  absl::StatusOr<AppendedRecord> Finish(const std::string& name, uint32_t attempt,
                                        const RecordSpec& spec = {}) {
    auto answers = jobs_->FinishTrials({{name, attempt, MakeResult(spec)}});
    EXPECT_TRUE(answers.ok()) << answers.status();
    return (*answers)[0];
  }

  TempDir directory_;
  int64_t now_ = 1000;
  uint32_t proposals_ = 0;
  const std::string job_ = JobId(9);
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<JobStore> jobs_;
};

}  // namespace mycc
