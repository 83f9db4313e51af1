// The report of a job, and `log show` of one: golden data of a made-up job, texts that stay data, and what is
// refused.
#include "mycc_tune/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "db/job_store.h"
#include "mycc_tune/log_commands.h"
#include "proto/job_state.pb.h"
#include "proto/names.h"
#include "proto/tuning.pb.h"
#include "tests/db/test_log.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "</script><script>window.injected = true</script><!--";

class JobReportTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TuningLog::Open(path_, OpenMode::kServe, [this] { return now_ += 1000; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
    JobStore store(log_.get());
    const v1::Record sample = MakeRecord({.shape = 64});
    Task task;
    task.key = {sample.workload(), sample.workload_hash(), sample.shape_erased_hash(), kHostile, kTarget};
    v1::StoredJob spec;
    spec.mutable_spec()->set_name("work");
    ASSERT_TRUE(store.CreateJob({.id = job_, .owner = "ann", .spec = spec.SerializeAsString()}, {task}).ok());
    ASSERT_TRUE(
        store.CreateJob({.id = JobId(10), .owner = "ann", .spec = spec.SerializeAsString()}, {task}).ok());
  }

  void Propose(uint32_t number, const std::vector<std::string>& traces, const std::string& reason,
               uint32_t points) {
    Generation generation{.job = job_,
                          .task = 0,
                          .generation = number,
                          .proposal = number,
                          .elapsed_seconds = 1.5 * number,
                          .state = "",
                          .trials = {}};
    v1::SearchState::Generation state;
    for (const std::string& trace : traces) {
      generation.trials.push_back({trace, v1::Provenance()});
      state.add_candidates();
    }
    v1::SearchState::Generation::Refusal& refusal = *state.add_refusals();
    refusal.set_reason(reason);
    refusal.set_points(points);
    generation.state = state.SerializeAsString();
    ASSERT_TRUE(JobStore(log_.get()).AddGeneration(generation).ok());
  }

  void Finish(uint32_t generation, uint32_t index, v1::MeasureResult result) {
    JobStore store(log_.get());
    const std::string name = TrialName({job_, 0, generation, index});
    const auto attempts = store.LeaseTrials({name}, "worker-a");
    ASSERT_TRUE(attempts.ok()) << attempts.status();
    const auto answers = store.FinishTrials({{name, (*attempts)[0], std::move(result)}});
    ASSERT_TRUE(answers.ok() && (*answers)[0].ok());
  }

  void Fill() {
    Propose(0, {"v1\nsketch tile a=2 b=1\nsplit(i, 1)\n", "v1\nsketch tile a=4 b=1\nsplit(i, 2)\n"},
            "17 accumulators of 16", 14);
    Propose(1, {"v1\nsketch tile a=4 b=2\nsplit(i, 3)\n"}, "18 accumulators of 16", 3);
    Finish(0, 0, MakeResult({.index = 1, .seconds = 4e-3}));
    Finish(0, 1, MakeResult({.index = 2, .seconds = 2e-3}));
    v1::MeasureResult failed = MakeResult({.index = 3, .status = v1::MEASURE_STATUS_RUN_ERROR});
    failed.set_error(absl::StrCat("signal 11 ", kHostile));
    Finish(1, 0, failed);
    JobStore store(log_.get());
    ASSERT_TRUE(store.SetJobState(job_, JobState::kDone, "all trials are measured").ok());
    v1::JobProgress progress;
    progress.set_job(job_);
    progress.set_name("work");
    progress.set_state(v1::JOB_STATE_DONE);
    progress.set_trials(3);
    progress.add_tasks()->set_workload_name(kHostile);
    ASSERT_TRUE(store.SetSummary(job_, progress.SerializeAsString()).ok());
  }

  absl::StatusOr<std::string> Report(LogReportArgs args) {
    args.log = path_;
    std::ostringstream out;
    const absl::Status status = LogReportCommand(args, out);
    if (!status.ok()) return status;
    return out.str();
  }

  TempDir directory_;
  const std::string path_ = directory_ / "tuning.db";
  const std::string job_ = JobId(9);
  int64_t now_ = 1'700'000'000'000'000;
  std::unique_ptr<TuningLog> log_;
};

TEST_F(JobReportTest, ItsDataIsAFunctionOfTheLog) {
  Fill();
  auto data = ReportData(log_.get(), job_);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(*ReportData(log_.get(), job_), *data);
  data->erase("version");
  EXPECT_TRUE(MatchesGolden("json/job_report", data->dump(1) + "\n"));
}

TEST_F(JobReportTest, TextsStayData) {
  Fill();
  const auto page = Report({.job = job_, .output = "-"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, Not(HasSubstr("</script><script>window")));
  EXPECT_THAT(*page, Not(HasSubstr("<!--")));
  EXPECT_THAT(*page, Not(HasSubstr("@REPORT_DATA@")));
  const std::string begin = "<script type=\"application/json\" id=\"report-data\">";
  const size_t from = page->find(begin) + begin.size();
  const ordered_json data = ordered_json::parse(page->substr(from, page->find("</script>", from) - from));
  EXPECT_EQ(data, *ReportData(log_.get(), job_));
  EXPECT_EQ(data["job"]["tasks"][0]["workload_name"], kHostile);
}

TEST_F(JobReportTest, ItIsWrittenToAFile) {
  Fill();
  const std::string output = directory_ / "report.html";
  const auto said = Report({.job = job_, .output = output});
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_THAT(*said, HasSubstr(absl::StrCat(output, ": 3 results of job ", job_)));
  EXPECT_THAT(ReadBytes(output), testing::StartsWith("<!doctype html>"));
}

TEST_F(JobReportTest, WhatCannotBeReportedIsRefused) {
  Fill();
  const std::string known = absl::StrCat("`; expected one of ", job_, " (work, 3 results, 2023-11-14 ");
  for (const std::string& unknown : {JobId(11), std::string("work")}) {
    const absl::Status refused = Report({.job = unknown}).status();
    EXPECT_TRUE(absl::IsNotFound(refused));
    EXPECT_THAT(refused.message(), HasSubstr(absl::StrCat(path_, ": no job `", unknown, known)));
  }
  EXPECT_THAT(Report({.job = JobId(10)}).status().message(), HasSubstr("has no results in"));
  EXPECT_THAT(Report({.job = job_, .output = directory_ / "none/report.html"}).status().message(),
              HasSubstr("cannot write"));
}

TEST_F(JobReportTest, WithoutAJobItIsTheNewestWithResults) {
  EXPECT_THAT(Report({.output = "-"}).status().message(),
              HasSubstr(": no job has results; expected those that `mycc-tune tune` leaves"));
  Fill();
  const std::string output = directory_ / "report.html";
  EXPECT_EQ(Report({.output = output}).value(), Report({.job = job_, .output = output}).value())
      << "the other one is newer, and has none";
  JobStore store(log_.get());
  ASSERT_TRUE(
      store.CreateJob({.id = JobId(12), .spec = store.GetJob(job_)->spec}, store.LoadTasks(job_).value())
          .ok());
  ASSERT_TRUE(log_->Append({MakeRecord({.index = 9, .job = 12})}).ok());
  const std::string said = Report({.output = output}).value();
  EXPECT_THAT(said, HasSubstr(absl::StrCat(output, ": 1 result of job ", JobId(12))));
  EXPECT_THAT(said,
              HasSubstr(absl::StrCat("it is the newest; the log has also ", job_, " (work, 3 results")));
  EXPECT_EQ(ordered_json::parse(Report({.json = true}).value())["job"]["job"], JobId(12));
}

TEST_F(JobReportTest, LogShowTellsWhyPointsDied) {
  Fill();
  std::ostringstream text, json;
  ASSERT_TRUE(LogShowCommand({.log = path_, .record = job_}, text).ok());
  EXPECT_THAT(text.str(), HasSubstr("work: done, all trials are measured\n"));
  EXPECT_THAT(text.str(),
              testing::ContainsRegex("0 +0 +0.0 s +2 +- +2.000 ms +14 +14 17 accumulators of 16\n"));
  EXPECT_THAT(text.str(),
              testing::ContainsRegex("0 +1 +1.5 s +1 +1 run_error +- +3 +3 18 accumulators of 16\n"));
  EXPECT_THAT(text.str(),
              HasSubstr("proposed: 3 candidates; failed: 1; refused before measurement: 17 other points"));
  ASSERT_TRUE(LogShowCommand({.log = path_, .record = job_, .json = true}, json).ok());
  const ordered_json shown = ordered_json::parse(json.str());
  EXPECT_EQ(shown["generations"][1]["refusals"][0]["points"], 3);
  EXPECT_EQ(shown["generations"][1]["failures"]["run_error"], 1);
  EXPECT_FALSE(LogShowCommand({.log = path_, .record = JobId(11)}, text).ok());
}

}  // namespace
}  // namespace mycc
