// The texts of a job's progress: line, bar, table and JSON.
#include "mycc_tune/progress_view.h"

#include <algorithm>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

v1::JobProgress Half() {
  v1::JobProgress progress;
  progress.set_job("j0123456789abcdef");
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_revision(7);
  progress.set_trials(64);
  progress.set_trials_planned(128);
  progress.set_elapsed_seconds(60);
  v1::TaskProgress& gemm = *progress.add_tasks();
  gemm.set_workload_name("gemm");
  gemm.set_count(3);
  gemm.set_trials(64);
  gemm.set_first_seconds(4e-3);
  gemm.set_best_seconds(1e-3);
  v1::StatusCount& ok = *gemm.add_outcomes();
  ok.set_status(v1::MEASURE_STATUS_OK);
  ok.set_count(60);
  v1::StatusCount& wrong = *gemm.add_outcomes();
  wrong.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  wrong.set_count(4);
  v1::TaskProgress& other = *progress.add_tasks();
  other.set_workload_name("scale");
  other.set_count(1);
  return progress;
}

TEST(ProgressViewTest, LineSaysWhatMatters) {
  EXPECT_EQ(ProgressLine(Half()),
            "50 %  64 trials (60 ok, 4 wrong_result)  weighted 12.000 ms -> 3.000 ms (4.00x, 1 to come)  eta "
            "1m 00s");
}

// The second of two kernels has no time yet.
v1::JobProgress HalfOfAModel() {
  v1::JobProgress progress = Half();
  progress.set_is_model(true);
  progress.set_tasks_timed(1);
  return progress;
}

TEST(ProgressViewTest, AModelHasALatencyOnceAllItsKernelsHaveATime) {
  v1::JobProgress progress = HalfOfAModel();
  EXPECT_EQ(ProgressLine(progress),
            "50 %  64 trials (60 ok, 4 wrong_result)  1 of 2 kernels timed  eta 1m 00s");
  progress.set_tasks_timed(2);
  progress.set_latency_seconds(3.21e-3);
  progress.set_default_latency_seconds(5.1e-3);
  EXPECT_EQ(ProgressLine(progress),
            "50 %  64 trials (60 ok, 4 wrong_result)  model 3.210 ms, was 5.100 ms by default schedules  eta "
            "1m 00s");
  EXPECT_THAT(ProgressBar(progress, 120),
              EndsWith("50 %  64 trials  model 3.210 ms, was 5.100 ms by default schedules  eta 1m 00s"));
  EXPECT_THAT(ProgressJson(progress), AllOf(HasSubstr("\"latency_seconds\":0.00321"),
                                            HasSubstr("\"default_latency_seconds\":0.0051")));
}

TEST(ProgressViewTest, AModelsTableEndsWithItsLatency) {
  v1::JobProgress progress = HalfOfAModel();
  EXPECT_THAT(SummaryTable(progress), HasSubstr("weighted sum"));
  progress.set_latency_seconds(3.21e-3);
  progress.set_default_latency_seconds(5.1e-3);
  EXPECT_THAT(SummaryTable(progress), AllOf(Not(HasSubstr("weighted sum")), HasSubstr("\nmodel "),
                                            HasSubstr("5.100 ms  3.210 ms     1.59x")));
}

TEST(ProgressViewTest, ShareAndEtaFollowTheTighterLimit) {
  v1::JobProgress progress = Half();
  progress.set_budget_seconds(80);
  EXPECT_DOUBLE_EQ(DoneShare(progress), 0.75);
  EXPECT_EQ(EtaText(progress), "20s");
  progress.set_elapsed_seconds(100);
  EXPECT_DOUBLE_EQ(DoneShare(progress), 1);
  EXPECT_EQ(EtaText(progress), "0s");
  progress.set_state(v1::JOB_STATE_DONE);
  EXPECT_DOUBLE_EQ(DoneShare(progress), 1);
  progress.clear_budget_seconds();
  progress.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_DOUBLE_EQ(DoneShare(progress), 0.5) << "it was cancelled half-way";
}

TEST(ProgressViewTest, BeforeTheFirstTrialNothingIsInvented) {
  v1::JobProgress progress;
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_trials_planned(100);
  EXPECT_EQ(ProgressLine(progress), "0 %  0 trials  eta ?");
}

TEST(ProgressViewTest, BarFitsItsTerminal) {
  EXPECT_THAT(ProgressBar(Half(), 200), HasSubstr("[############............] 50 %"));
  EXPECT_THAT(ProgressBar(Half(), 110),
              EndsWith("50 %  64 trials  weighted 12.000 ms -> 3.000 ms (4.00x, 1 to come)  eta 1m 00s"));
  EXPECT_THAT(ProgressBar(Half(), 60), EndsWith("] 50 %  64 trials  eta 1m 00s"));
  EXPECT_THAT(ProgressBar(Half(), 45), EndsWith("] 50 %  64 trials"));
  v1::JobProgress ending = Half();
  ending.set_message("all trials are measured; 0 of 2 final rounds are over");
  EXPECT_THAT(ProgressBar(ending, 79),
              AllOf(EndsWith("64 trials  all trials are measured; 0 of 2 ..."), SizeIs(79)));
  EXPECT_THAT(ProgressBar(Half(), 30), AllOf(SizeIs(30), EndsWith("...")));
  EXPECT_THAT(ProgressBar(Half(), 0), SizeIs(0));
}

TEST(ProgressViewTest, TableSaysHowTheBestWasFound) {
  v1::JobProgress progress = Half();
  EXPECT_THAT(SummaryTable(progress), Not(HasSubstr("final round")));
  EXPECT_THAT(SummaryTable(progress), HasSubstr("4.00x  single timings\n"));
  progress.mutable_tasks(0)->set_finalists(3);
  progress.mutable_tasks(0)->set_default_final_seconds(4.5e-3);
  EXPECT_THAT(SummaryTable(progress),
              HasSubstr("4.500 ms  1.000 ms     4.50x  best of 3 in the final round\n"));
  progress.mutable_tasks(0)->set_ties(1);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("best of 3 in the final round, tied with 1 other\n"));
  progress.mutable_tasks(0)->set_ties(2);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("in the final round, tied with 2 others\n"));
  progress.mutable_tasks(0)->clear_ties();
  progress.mutable_tasks(0)->set_best_width(0.12);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("in the final round, known to +-6 % only\n"));
  progress.mutable_tasks(0)->set_is_earlier_round(true);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("best of 3 in an earlier final round, known to"));
}

TEST(ProgressViewTest, TableSaysWhichTimesAreHardlyKnown) {
  v1::JobProgress progress = Half();
  progress.mutable_tasks(0)->set_first_width(HUGE_VAL);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("single timings, the default's time is of one sample\n"));
  progress.mutable_tasks(0)->set_first_width(0.5);
  progress.mutable_tasks(0)->set_best_width(HUGE_VAL);
  EXPECT_THAT(SummaryTable(progress),
              HasSubstr("single timings, of one sample, the default's time is known to +-25 % only\n"));
}

// The default was timed early, the final round at a slow moment: only times of one moment are compared.
TEST(ProgressViewTest, TimesOfDifferentMomentsAreNotCompared) {
  v1::JobProgress progress = Half();
  v1::TaskProgress& task = *progress.mutable_tasks(0);
  task.set_first_seconds(1.587e-3);
  task.set_best_alone_seconds(1.5e-3);
  task.set_best_seconds(2.363e-3);
  task.set_finalists(2);
  task.set_default_final_seconds(2.363e-3);
  EXPECT_THAT(SummaryTable(progress),
              HasSubstr("2.363 ms  2.363 ms     1.00x  best of 2 in the final round\n"));
  EXPECT_THAT(ProgressLine(progress), HasSubstr("weighted 7.089 ms -> 7.089 ms (1.00x"));
  // It was far behind, and not in the round.
  task.set_first_seconds(9e-3);
  task.set_default_final_seconds(0);
  EXPECT_THAT(
      SummaryTable(progress),
      HasSubstr(
          "9.000 ms  2.363 ms     6.00x  best of 2 in the final round, the speed-up is of single timings"));
  EXPECT_THAT(ProgressLine(progress), HasSubstr("weighted 27.000 ms -> 4.500 ms (6.00x"));
}

TEST(ProgressViewTest, TasksAreToldApartByTheirTargets) {
  v1::JobProgress progress = Half();
  for (v1::TaskProgress& task : *progress.mutable_tasks())
    task.set_target("v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2");
  EXPECT_THAT(SummaryTable(progress), ::testing::Not(HasSubstr("znver4")));
  progress.mutable_tasks(1)->set_target("v1 cuda arch=sm_90a sms=132 smem=232448 l2=60M");
  EXPECT_THAT(SummaryTable(progress), HasSubstr("gemm for cpu mcpu=znver4 "));
  EXPECT_THAT(SummaryTable(progress), HasSubstr("scale for cuda arch=sm_90a "));
}

TEST(ProgressViewTest, TableHasARowForEachTaskAndTheSum) {
  const std::string table = SummaryTable(Half());
  EXPECT_THAT(table, HasSubstr("gemm"));
  EXPECT_THAT(table, HasSubstr("4.00x"));
  EXPECT_THAT(table, HasSubstr("weighted sum"));
}

TEST(ProgressViewTest, TableSaysHowBusyEachDeviceWas) {
  v1::JobProgress progress = Half();
  EXPECT_THAT(SummaryTable(progress), ::testing::Not(HasSubstr("busy")));
  v1::DeviceWork& work = *progress.add_devices();
  work.set_worker("farm");
  work.set_device("cuda:0");
  work.set_trials(64);
  work.set_run_seconds(progress.elapsed_seconds() * 0.75);
  EXPECT_THAT(SummaryTable(progress), HasSubstr("\ncuda:0 of farm: 64 trials, busy 75 % of "));
}

TEST(ProgressViewTest, PipeGetsLinesAndNotOneForEveryTrial) {
  std::ostringstream out;
  ProgressView view(ProgressView::Style::kLines, &out);
  v1::JobProgress progress = Half();
  for (int i = 0; i < 30; ++i) {
    progress.set_revision(progress.revision() + 1);
    progress.set_elapsed_seconds(60 + i);
    view.Update(progress);
  }
  const std::string text = out.str();
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(ProgressViewTest, NewMessageIsALineAtOnce) {
  std::ostringstream out;
  ProgressView view(ProgressView::Style::kLines, &out);
  v1::JobProgress progress = Half();
  view.Update(progress);
  progress.set_message("waiting for a worker");
  view.Update(progress);
  EXPECT_THAT(out.str(), HasSubstr("waiting for a worker\n"));
}

TEST(ProgressViewTest, JsonIsOneObjectALine) {
  std::ostringstream out;
  ProgressView view(ProgressView::Style::kJson, &out);
  view.Update(Half());
  view.Update(Half());
  view.Say("words are for people");
  view.Finish(Half());
  const std::string text = out.str();
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_THAT(text, HasSubstr("\"workload_name\":\"gemm\""));
  EXPECT_THAT(text, HasSubstr("\"state\":\"running\""));
}

TEST(ProgressViewTest, QuietIsTheResultAlone) {
  std::ostringstream out;
  ProgressView view(ProgressView::Style::kQuiet, &out);
  view.Say("started");
  view.Update(Half());
  EXPECT_EQ(out.str(), "");
  view.Finish(Half());
  EXPECT_EQ(out.str(), ProgressLine(Half()) + "\n\n" + SummaryTable(Half()));
}

TEST(ProgressViewTest, TerminalIsRedrawn) {
  std::ostringstream out;
  ProgressView view(ProgressView::Style::kBar, &out);
  view.Update(Half());
  view.Update(Half());
  view.Say("a line");
  EXPECT_THAT(out.str(), HasSubstr("\r\x1b[K["));
  EXPECT_THAT(out.str(), HasSubstr("\r\x1b[Ka line\n"));
}

v1::JobProgress Fallen(const std::vector<double>& latencies) {
  v1::JobProgress progress;
  for (size_t i = 0; i < latencies.size(); ++i) {
    v1::JobProgress::Milestone& milestone = *progress.add_milestones();
    milestone.set_trials(static_cast<int64_t>(4 * (i + 1)));
    milestone.set_elapsed_seconds(0.5 * static_cast<double>(i + 1));
    milestone.set_latency_seconds(latencies[i]);
  }
  return progress;
}

TEST(ProgressViewTest, EachFurtherPercentHasItsCost) {
  EXPECT_EQ(MilestoneTable(Fallen({})), "");
  EXPECT_EQ(MilestoneTable(Fallen({0.010})), "");
  const std::string table = MilestoneTable(Fallen({0.010, 0.0080, 0.0075}));
  EXPECT_THAT(table, HasSubstr("by single timings"));
  EXPECT_THAT(table, HasSubstr("20.0 %"));
  EXPECT_THAT(table, HasSubstr("0.2 trials, 0.025 s")) << "20 % by four trials";
  EXPECT_THAT(table, HasSubstr("0.8 trials, 0.1 s")) << "5 % by four more";
}

TEST(ProgressViewTest, CostsHaveTwoDigitsAndNoExponent) {
  v1::JobProgress progress = Fallen({0.010, 0.0075, 0.00749, 0.00748});
  progress.mutable_milestones(1)->set_trials(5);
  progress.mutable_milestones(1)->set_elapsed_seconds(0.5);
  progress.mutable_milestones(2)->set_elapsed_seconds(12.7);
  progress.mutable_milestones(3)->set_elapsed_seconds(14.0);
  const std::string table = MilestoneTable(progress);
  EXPECT_THAT(table, HasSubstr("0.04 trials, 0 s")) << "25 % by one trial of the same generation";
  EXPECT_THAT(table, HasSubstr("70 trials, 122 s")) << "0.1 % by seven trials in 12.2 s";
  EXPECT_THAT(table, AllOf(HasSubstr("25.0 %"), HasSubstr("25.1 %"), HasSubstr("25.2 %")));
}

TEST(ProgressViewTest, AFewOfManyMilestonesAreShownWithBothEnds) {
  std::vector<double> latencies;
  for (int i = 0; i <= 60; ++i) latencies.push_back(0.010 - 0.0001 * i);
  const std::string table = MilestoneTable(Fallen(latencies));
  EXPECT_THAT(table, AllOf(HasSubstr("10.000 ms"), HasSubstr("4.000 ms"), HasSubstr("60.0 %")));
  EXPECT_LE(std::ranges::count(table, '\n'), 14);
}

TEST(ProgressViewTest, TheGainOfTwiceIsSaidWhereItIsKnown) {
  v1::JobProgress progress;
  EXPECT_EQ(GainText(progress), "");
  progress.set_gain_of_twice(0.0123);
  EXPECT_EQ(GainText(progress), "as many trials again are expected to gain 1.2 %\n");
  progress.set_gain_of_twice(0);
  EXPECT_EQ(GainText(progress), "as many trials again are expected to gain 0.0 %\n");
}

}  // namespace
}  // namespace mycc
