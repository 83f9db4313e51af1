#include "server/job_finals.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "db/record_check.h"
#include "proto/names.h"

namespace mycc {

std::vector<QueuedTrial> JobFinals::Plan() {
  std::vector<QueuedTrial> rounds;
  for (uint32_t task = 0; task < job_->plan().tasks.size(); ++task) {
    if (job_->stored_tasks()[task].reused()) continue;
    const PlannedTask& planned = job_->plan().tasks[task];
    const absl::StatusOr<std::optional<FinalRound>> found =
        PlanFinalRound(*log_, job_->id(), task, planned, job_->default_trial(task));
    if (!found.ok()) Fail(task, std::string(found.status().message()));
    if (!found.ok() || !found->has_value()) continue;
    const FinalRound& round = **found;
    QueuedTrial& queued = rounds.emplace_back(QueuedTrial{.name = round.name,
                                                          .job = job_->id(),
                                                          .target = planned.key.target,
                                                          .task = task,
                                                          .trace = round.finalists[0].trace()});
    for (size_t i = 1; i < round.finalists.size(); ++i) queued.rivals.push_back(round.finalists[i].trace());
    open_[round.name] = round;
  }
  planned_ = open_.size();
  return rounds;
}

absl::Status JobFinals::Finish(const std::string& round, const std::vector<v1::MeasureResult>& results) {
  const auto found = open_.find(round);
  if (found == open_.end()) return absl::OkStatus();
  const absl::StatusOr<std::vector<v1::Record>> records = RecordsOf(found->second, results, log_->now());
  if (!records.ok()) {
    const std::string& error = results[0].error();
    GiveUp(round, error.empty() ? std::string(records.status().message())
                                : absl::StrCat(StatusName(results[0].status()), ": ", error));
    return absl::OkStatus();
  }
  const absl::Status appended = log_->Append(*records).status();
  if (absl::IsInvalidArgument(appended)) {
    GiveUp(round, std::string(appended.message()));
    return absl::OkStatus();
  }
  MYCC_RETURN_IF_ERROR(appended);
  job_->SetFinal(found->second.task, FinalTimesOf(*records, found->second.by_default));
  open_.erase(found);
  return absl::OkStatus();
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
  failures_.push_back(absl::StrCat("no final round of ", job_->plan().tasks[task].key.workload_name,
                                   ", its single timings stand: ", why));
}

std::string JobFinals::Progress() const {
  return absl::StrCat(planned_ - open_.size(), " of ", planned_, " final rounds are over");
}

std::string JobFinals::Failures() const { return absl::StrJoin(failures_, "; "); }

}  // namespace mycc
