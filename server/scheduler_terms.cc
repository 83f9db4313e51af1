#include "server/scheduler_terms.h"

#include <algorithm>
#include <limits>

#include "tuner/scheduler/generation_plan.h"
#include "tuner/search/strategy.h"

namespace mycc {

// A job that is limited as a whole, and not each of its tasks, begins with what matters most.
SchedulerConfig SchedulerOf(const v1::StoredJob& job, const std::vector<PlannedTask>& tasks) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;
  const v1::JobSpec& spec = job.spec();
  SchedulerConfig config;
  config.max_trials = spec.total_trials() > 0 ? spec.total_trials() : kNoLimit;
  config.max_trials_per_task = spec.trials() > 0 ? spec.trials() : kNoLimit;
  config.max_seconds = SearchSeconds(spec, tasks.size());
  config.generation_size = job.generation_size();
  if (spec.trials() == 0) config.first_trials = std::max<int64_t>(1, config.generation_size / 4);
  config.adapts_to_budget = Learns(spec.strategy());
  // A job of several tasks keeps builders busy with the others.
  if (tasks.size() == 1 && tasks[0].target.kind == TargetKind::kCuda)
    config.least_generation = kLeastGenerationOfSlowBuilds;
  if (spec.is_model()) config.min_share = kMinShareOfModel;
  (HasTimeLimit(job) ? config.min_gain : config.min_gain_of_twice) = spec.min_gain();
  return config;
}

bool HasTimeLimit(const v1::StoredJob& job) {
  return job.spec().budget_seconds() > 0 || job.deadline_unix_micros() > 0;
}

uint32_t LeastWindowOf(const JobLedger& ledger) {
  const std::vector<PlannedTask>& tasks = ledger.plan().tasks;
  int64_t searched = 0;
  for (uint32_t task = 0; task < tasks.size(); ++task) searched += ledger.searches(task) ? 1 : 0;
  return LeastWindow(SchedulerOf(ledger.stored(), tasks), searched);
}

}  // namespace mycc
