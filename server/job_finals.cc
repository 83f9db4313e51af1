#include "server/job_finals.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "db/record_check.h"
#include "proto/names.h"

namespace mycc {

FinalsQuestion FinalsQuestionOf(const JobLedger& ledger) {
  FinalsQuestion question{.job = ledger.id(), .tasks = {}};
  for (uint32_t task = 0; task < ledger.plan().tasks.size(); ++task) {
    if (ledger.searches(task) && !ledger.is_negligible(task))
      question.tasks.push_back(
          {task,
           &ledger.plan().tasks[task],
           {ledger.default_trial(task), ledger.best_trial(task), ledger.best_share(task)}});
  }
  return question;
}

FinalsPlan PlanFinals(const FinalsQuestion& question, const TuningLog& log) {
  FinalsPlan plan;
  for (const FinalsQuestion::Searched& searched : question.tasks) {
    absl::StatusOr<FinalRoundPlan> planned =
        PlanFinalRound(log, question.job, searched.task, *searched.planned, searched.own);
    if (!planned.ok()) {
      plan.failures.emplace_back(searched.task, std::string(planned.status().message()));
    } else if (planned->round) {
      plan.rounds.push_back(*std::move(planned->round));
    } else if (planned->earlier) {
      plan.earlier.emplace_back(searched.task, *planned->earlier);
    }
  }
  return plan;
}

std::vector<QueuedWork> QueuedRounds(const JobLedger& ledger, const FinalsPlan& plan) {
  std::vector<QueuedWork> rounds;
  for (const FinalRound& round : plan.rounds) {
    FinalRoundWork work;
    for (const v1::Record& finalist : round.finalists) work.traces.push_back(finalist.trace());
    rounds.push_back({.name = round.name,
                      .job = ledger.id(),
                      .target = ledger.plan().tasks[round.task].key.target,
                      .task = round.task,
                      .protocol = ledger.plan().tasks[round.task].protocol,
                      .what = std::move(work)});
  }
  return rounds;
}

JobFinals::JobFinals(JobLedger* ledger, const FinalsPlan& plan) : ledger_(ledger) {
  for (const FinalRound& round : plan.rounds) open_[round.name] = round;
  planned_ = open_.size();
  for (const auto& [task, times] : plan.earlier) ledger_->SetFinal(task, times);
  for (const auto& [task, why] : plan.failures) Fail(task, why);
}

std::vector<v1::Record> JobFinals::Records(const std::string& round,
                                           const std::vector<v1::MeasureResult>& results,
                                           int64_t now_unix_micros) {
  absl::StatusOr<std::vector<v1::Record>> records = RecordsOf(open_.at(round), results, now_unix_micros);
  if (records.ok()) return *std::move(records);
  const std::string& error = results[0].error();
  GiveUp(round, error.empty() ? std::string(records.status().message())
                              : absl::StrCat(StatusName(results[0].status()), ": ", error));
  return {};
}

void JobFinals::Finish(const std::string& round, const std::vector<v1::Record>& records) {
  const auto found = open_.find(round);
  if (found == open_.end()) return;  // given up meanwhile
  if (!records.empty())
    ledger_->SetFinal(found->second.task, FinalTimesOf(records, found->second.by_default));
  open_.erase(found);
}

void JobFinals::GiveUp(const std::string& round, const std::string& why) {
  const auto found = open_.find(round);
  if (found == open_.end()) return;
  Fail(found->second.task, why);
  open_.erase(found);
}

void JobFinals::GiveUpAll(const std::string& why) {
  while (is_open()) GiveUp(open_.begin()->first, why);
}

void JobFinals::Fail(uint32_t task, const std::string& why) {
  failures_.push_back(absl::StrCat("no final round of ", ledger_->plan().tasks[task].key.workload_name,
                                   ", its single timings stand: ", why));
}

std::string JobFinals::Progress() const {
  return absl::StrCat(planned_ - open_.size(), " of ", planned_, " final rounds are over");
}

std::string JobFinals::Failures() const { return absl::StrJoin(failures_, "; "); }

}  // namespace mycc
