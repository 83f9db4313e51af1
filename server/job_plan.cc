#include "server/job_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "proto/names.h"
#include "server/listed_job.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

constexpr int kMaxTasks = 10000;
constexpr char kDefaultStrategy[] = "evolutionary";
// The share of a budget that final rounds are given.
constexpr double kFinalSecondsATask = 2, kMostFinalShare = 0.25;
// A launch by another grouping counts less than one by the model: perhaps it never happens.
constexpr double kWeightOfAlternative = 0.5;

absl::Status Expected(const std::string& what, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("job: ", what, "; expected ", expected));
}

// Checks all that can be checked without reading the workloads.
absl::Status CheckLimits(const v1::JobSpec& spec, bool has_deadline) {
  if (spec.tasks().empty()) return Expected("no workload", "at least one");
  if (spec.tasks_size() > kMaxTasks)
    return Expected(absl::StrCat(spec.tasks_size(), " workloads"), absl::StrCat("at most ", kMaxTasks));
  if (!(spec.budget_seconds() >= 0)) return Expected("the budget is negative", "seconds, or 0 for no limit");
  const bool is_limited =
      spec.trials() > 0 || spec.total_trials() > 0 || spec.budget_seconds() > 0 || has_deadline;
  if (!is_limited && !IsListed(spec))
    return Expected("neither trials nor a budget nor a deadline", "at least one of them");
  if (!(spec.min_gain() >= 0 && spec.min_gain() < 1))
    return Expected("the least gain is no share", "0 to 1, or 0 for none");
  return absl::OkStatus();
}

absl::StatusOr<PlannedTask> PlanTask(const v1::TaskSpec& spec, int index, const v1::JobSpec& job) {
  const std::string origin = absl::StrCat("workload ", index + 1);
  if (spec.count() < 0)
    return Expected(absl::StrCat(origin, " occurs ", spec.count(), " times"), "a count of at least 1");
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(spec.workload(), origin));
  PlannedTask task;
  task.workload = Canonicalize(workload);
  task.key.workload = CanonicalText(workload);
  task.key.workload_hash = WorkloadHash(workload);
  task.key.shape_erased_hash = ShapeErasedHash(workload);
  task.key.workload_name = workload.name;
  MYCC_ASSIGN_OR_RETURN(task.target, ParseTarget(spec.target().empty() ? job.target() : spec.target()));
  task.key.target = PrintTarget(task.target);
  task.protocol = ProtocolOf(job, task.target);
  if (task.protocol == v1::TIMING_PROTOCOL_MODEL && task.target.kind != TargetKind::kCpu)
    return Expected(absl::StrCat(origin, " is to be timed as in a model on ", task.key.target),
                    "a CPU, or the protocol cold or warm");
  if (IsListed(job)) {
    MYCC_ASSIGN_OR_RETURN(task.candidates, ReadCandidates(spec, origin));
  } else if (!spec.candidates().empty()) {
    return Expected(absl::StrCat(origin, " lists candidates, and the strategy is ", job.strategy()),
                    absl::StrCat("the strategy ", kListedStrategy));
  }
  const int64_t count = spec.count() > 0 ? spec.count() : workload.count;
  task.count = spec.is_alternative() ? 0 : count;
  task.weight = static_cast<double>(count) * (spec.is_alternative() ? kWeightOfAlternative : 1);
  return task;
}

// The part of a job's time that its final rounds are given.
double FinalSeconds(double seconds, size_t tasks) {
  return std::min(kMostFinalShare * seconds, kFinalSecondsATask * static_cast<double>(tasks));
}

// The groupings by the numbers of merged tasks.
absl::Status RenumberGroupings(const std::vector<size_t>& numbers, v1::JobSpec* spec) {
  const auto renumber = [&](uint32_t task) -> absl::StatusOr<uint32_t> {
    if (task >= numbers.size())
      return Expected(absl::StrCat("a grouping of workload ", task + 1), "one of the job's workloads");
    return static_cast<uint32_t>(numbers[task]);
  };
  for (v1::Grouping& grouping : *spec->mutable_groupings()) {
    MYCC_ASSIGN_OR_RETURN(const uint32_t task, renumber(grouping.task()));
    grouping.set_task(task);
    for (auto* parts : {grouping.mutable_parts(), grouping.mutable_more()}) {
      for (v1::Grouping::Part& part : *parts) {
        MYCC_ASSIGN_OR_RETURN(const uint32_t number, renumber(part.task()));
        part.set_task(number);
      }
    }
  }
  return absl::OkStatus();
}

// A job that lists its candidates measures as many.
absl::Status LimitToCandidates(JobPlan* plan) {
  if (!IsListed(plan->spec)) return absl::OkStatus();
  size_t candidates = 0;
  for (const PlannedTask& task : plan->tasks) candidates += task.candidates.size();
  if (candidates > kMostCandidates)
    return Expected(absl::StrCat(candidates, " candidates"), absl::StrCat("at most ", kMostCandidates));
  plan->spec.set_total_trials(static_cast<uint32_t>(candidates));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& spec, bool has_deadline) {
  MYCC_RETURN_IF_ERROR(CheckLimits(spec, has_deadline));
  JobPlan plan;
  plan.spec = spec;
  if (spec.strategy().empty()) plan.spec.set_strategy(kDefaultStrategy);
  MYCC_RETURN_IF_ERROR(CheckStrategy(plan.spec.strategy()));

  std::map<std::pair<std::string, std::string>, size_t> known_keys;
  std::vector<size_t> numbers;  // of the merged task of each
  for (int i = 0; i < spec.tasks_size(); ++i) {
    MYCC_ASSIGN_OR_RETURN(PlannedTask task, PlanTask(spec.tasks(i), i, spec));
    const auto [known, is_new] =
        known_keys.try_emplace({task.key.workload_hash, task.key.target}, plan.tasks.size());
    numbers.push_back(known->second);
    if (is_new) {
      plan.tasks.push_back(std::move(task));
    } else {
      plan.tasks[known->second].count += task.count;
      plan.tasks[known->second].weight += task.weight;
      AddCandidates(task.candidates, &plan.tasks[known->second].candidates);
    }
  }
  MYCC_RETURN_IF_ERROR(RenumberGroupings(numbers, &plan.spec));
  MYCC_RETURN_IF_ERROR(LimitToCandidates(&plan));
  plan.spec.set_target(plan.tasks[0].key.target);
  plan.spec.clear_tasks();
  for (const PlannedTask& task : plan.tasks) {
    v1::TaskSpec& canonical = *plan.spec.add_tasks();
    canonical.set_workload(task.key.workload);
    canonical.set_count(task.count);
    canonical.set_is_alternative(task.count == 0);
    canonical.set_target(task.key.target);
  }
  return plan;
}

KernelUse UseOf(const v1::JobSpec& spec) { return spec.is_model() ? KernelUse::kInModel : KernelUse::kAlone; }

double WeightOf(const v1::StoredTask& task) {
  return task.weight() > 0 ? task.weight() : static_cast<double>(task.count());
}

v1::TimingProtocol ProtocolOf(const v1::JobSpec& spec, const Target& target) {
  return ProtocolFor(target, spec.protocol(), UseOf(spec));
}

double SearchSeconds(const v1::JobSpec& spec, size_t tasks) {
  return spec.budget_seconds() - FinalSeconds(spec.budget_seconds(), tasks);
}

int64_t SearchDeadline(const JobTerms& terms, int64_t created_unix_micros, size_t tasks) {
  const double seconds = static_cast<double>(terms.deadline_unix_micros - created_unix_micros) / 1e6;
  return terms.deadline_unix_micros - static_cast<int64_t>(FinalSeconds(std::max(0.0, seconds), tasks) * 1e6);
}

JobTerms TermsOf(const v1::StoredJob& job) {
  return {.owner = job.owner(),
          .priority = job.priority(),
          .only_when_idle = job.spec().only_when_idle(),
          .deadline_unix_micros = job.deadline_unix_micros()};
}

void ShowTerms(const JobTerms& terms, v1::JobProgress* progress) {
  progress->set_owner(terms.owner);
  progress->set_priority(terms.priority);
  progress->set_only_when_idle(terms.only_when_idle);
  progress->set_deadline_unix_micros(terms.deadline_unix_micros);
}

int64_t TrialsPlanned(const v1::JobSpec& spec, int64_t tasks) {
  const int64_t of_tasks = spec.trials() * tasks, of_job = tasks > 0 ? spec.total_trials() : 0;
  return of_tasks == 0 || of_job == 0 ? std::max(of_tasks, of_job) : std::min(of_tasks, of_job);
}

std::string OldJobIdOf(const std::string& submission, int n) {
  uint64_t bits = 0;
  const bool parsed = absl::SimpleHexAtoi(Sha256Hex(absl::StrCat(submission, "#", n)).substr(0, 16), &bits);
  return parsed ? JobId(bits) : "";
}

}  // namespace mycc
