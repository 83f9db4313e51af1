#include "web/convergence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr size_t kMostJobs = 64;
constexpr int64_t kRowsAPage = 5000;

}  // namespace

Convergence::Convergence(const std::vector<int64_t>& task_keys) : tasks_(task_keys.size()) {
  for (size_t task = 0; task < task_keys.size(); ++task) task_of_key_[task_keys[task]] = task;
}

void Convergence::Add(const CandidateRow& row) {
  last_id_ = row.id;
  const auto found = task_of_key_.find(row.key);
  if (row.is_final || found == task_of_key_.end()) return;
  TaskConvergence& task = tasks_[found->second];
  ++task.trials;
  task.last_unix_micros = row.recorded_unix_micros;
  const bool is_valid = row.status == v1::MEASURE_STATUS_OK && row.verified;
  if (is_valid && (task.points.empty() || row.seconds < task.points.back().seconds))
    task.points.push_back({task.trials, row.recorded_unix_micros, row.seconds});
}

std::shared_ptr<Convergences::Entry> Convergences::EntryOf(const std::string& job) {
  const MutexLock lock(&mutex_);
  const auto found = std::ranges::find_if(
      entries_, [&job](const std::shared_ptr<Entry>& entry) { return entry->job == job; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front();
  }
  auto entry = std::make_shared<Entry>();
  entry->job = job;
  entries_.push_front(std::move(entry));
  if (entries_.size() > kMostJobs) entries_.pop_back();
  return entries_.front();
}

absl::StatusOr<std::vector<TaskConvergence>> Convergences::Read(const TuningLog& log,
                                                                const std::string& job) {
  const std::shared_ptr<Entry> entry = EntryOf(job);
  const MutexLock lock(&entry->mutex);
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> keys, ReadTaskKeys(log, job));
  // A job gets its tasks when it is taken up.
  if (entry->read == nullptr || entry->read->tasks().size() != keys.size())
    entry->read = std::make_unique<Convergence>(keys);
  while (true) {
    MYCC_ASSIGN_OR_RETURN(
        const std::vector<CandidateRow> rows,
        ReadCandidates(
            log, {.job = job, .after = entry->read->last_id(), .limit = kRowsAPage, .with_heads = false}));
    for (const CandidateRow& row : rows) entry->read->Add(row);
    if (rows.size() < kRowsAPage) return entry->read->tasks();
  }
}

}  // namespace mycc
