#include "server/job_ledger.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "tuner/scheduler/gain_forecast.h"

namespace mycc {
namespace {

std::vector<double> CountsOf(const JobPlan& plan) {
  std::vector<double> counts;
  for (const PlannedTask& task : plan.tasks) counts.push_back(static_cast<double>(task.count));
  return counts;
}

}  // namespace

JobLedger::JobLedger(std::string id, v1::StoredJob stored, JobPlan plan, std::vector<v1::StoredTask> tasks,
                     int64_t created_unix_micros)
    : id_(std::move(id)),
      stored_(std::move(stored)),
      plan_(std::move(plan)),
      stored_tasks_(std::move(tasks)),
      created_unix_micros_(created_unix_micros),
      tasks_(plan_.tasks.size()),
      milestones_(CountsOf(plan_)) {}

void JobLedger::AddProposal(uint32_t task, const v1::SearchState::Generation& state) {
  tasks_[task].proposals.push_back(proposals_.size());
  Measured& proposal = proposals_.emplace_back(Measured{state.candidates_size(), {}, 0});
  for (const v1::SearchState::Candidate& candidate : state.candidates()) {
    proposal.is_default.push_back(static_cast<Origin>(candidate.origin()) == Origin::kDefault);
  }
  for (const v1::SearchState::Generation::Refusal& refusal : state.refusals())
    refusals_.Add(refusal.reason(), refusal.points());
  open_trials_ += proposal.open;
  tasks_[task].open += proposal.open;
  window_.Add(proposal.open, state.window());
  last_window_ = state.window();
}

void JobLedger::Finish(uint32_t task, uint32_t generation, uint32_t index, const v1::MeasureResult& result,
                       double elapsed_seconds) {
  TaskState& state = tasks_[task];
  const size_t number = state.proposals[generation];
  Measured& proposal = proposals_[number];
  const bool is_default = proposal.is_default[index];
  --proposal.open;
  --open_trials_;
  --state.open;
  while (complete_ < static_cast<int>(proposals_.size()) &&
         proposals_[static_cast<size_t>(complete_)].open == 0)
    ++complete_;

  // Only what was verified has a time.
  const bool ok = result.status() == v1::MEASURE_STATUS_OK && result.verification().passed();
  ++state.trials;
  ++finished_trials_;
  state.measured += IsInfrastructureFailure(result.status()) ? 0 : 1;
  ++state.outcomes[result.status()];
  const double seconds = result.timing().seconds();
  if (ok && (state.best_seconds == 0 || seconds < state.best_seconds)) {
    state.best_seconds = seconds;
    state.best_width = RelativeWidth(result.timing());
    state.best_trial = TrialName({id_, task, generation, index});
    milestones_.OnBest(task, seconds, finished_trials_, elapsed_seconds);
  }
  if (ok && (proposal.best_seconds == 0 || seconds < proposal.best_seconds)) proposal.best_seconds = seconds;
  if (ok && is_default && (state.first_seconds == 0 || seconds < state.first_seconds)) {
    state.first_seconds = seconds;
    state.first_width = RelativeWidth(result.timing());
    state.default_trial = TrialName({id_, task, generation, index});
  }

  v1::DeviceWork& device = devices_[{result.device().worker(), result.device().device()}];
  device.set_worker(result.device().worker());
  device.set_device(result.device().device());
  device.set_trials(device.trials() + 1);
  device.set_run_seconds(device.run_seconds() + result.timing().run_seconds());

  Outcome outcome;
  outcome.generation = generation;
  outcome.index = index;
  if (ok) {
    outcome.seconds = seconds;
  } else if (!IsInfrastructureFailure(result.status())) {
    outcome.failure = StatusName(result.status());
  }
  untold_[task].push_back(std::move(outcome));
}

std::optional<double> JobLedger::GainOfTwice() const {
  std::vector<TrialFall> falls;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (plan_.tasks[i].count == 0 || tasks_[i].best_seconds == 0) continue;
    TrialFall& fall = falls.emplace_back(TrialFall{static_cast<double>(plan_.tasks[i].count), {}});
    int64_t trials = 0;
    for (const size_t number : tasks_[i].proposals) {
      const Measured& proposal = proposals_[number];
      trials += static_cast<int64_t>(proposal.is_default.size());
      double best = fall.best.empty() ? 0 : fall.best.back().second;
      if (proposal.best_seconds > 0 && (best == 0 || proposal.best_seconds < best))
        best = proposal.best_seconds;
      if (best > 0) fall.best.emplace_back(trials, best);
    }
    if (fall.best.empty()) fall.best.emplace_back(0, tasks_[i].best_seconds);  // nothing is measured for it
  }
  return mycc::GainOfTwice(falls);
}

void JobLedger::Retell(TaskOutcomes outcomes) {
  for (auto& [task, of_task] : outcomes) {
    std::vector<Outcome>& untold = untold_[task];
    untold.insert(untold.end(), std::make_move_iterator(of_task.begin()),
                  std::make_move_iterator(of_task.end()));
  }
}

bool JobLedger::searches_any() const {
  for (uint32_t task = 0; task < tasks_.size(); ++task)
    if (searches(task)) return true;
  return false;
}

std::vector<uint32_t> JobLedger::followed() const {
  std::vector<uint32_t> followed;
  for (uint32_t task = 0; task < tasks_.size(); ++task)
    if (!searches(task) && !stored_tasks_[task].reused()) followed.push_back(task);
  return followed;
}

int64_t JobLedger::num_candidates(uint32_t task) const {
  size_t candidates = 0;
  for (const size_t proposal : tasks_[task].proposals) candidates += proposals_[proposal].is_default.size();
  return static_cast<int64_t>(candidates);
}

std::string JobLedger::TaskOutcome(uint32_t task) const {
  const TaskState& state = tasks_[task];
  if (const std::string& leader = stored_tasks_[task].measured_by(); !leader.empty())
    return absl::StrCat("measured by job ", leader);
  if (stored_tasks_[task].reused()) return "the log already had the results";
  if (state.best_seconds > 0 || state.trials == 0) return "";
  std::vector<std::string> counts;
  for (const auto& [status, count] : state.outcomes)
    counts.push_back(absl::StrCat(count, " ", StatusName(status)));
  return absl::StrCat("no valid schedule in ", HowMany(state.trials, "trial"), ": ",
                      absl::StrJoin(counts, ", "));
}

bool JobLedger::is_negligible(uint32_t task) const {
  if (!stored_.spec().is_model()) return false;
  double latency = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) latency += plan_.tasks[i].weight * tasks_[i].best_seconds;
  return plan_.tasks[task].weight * tasks_[task].best_seconds < kMinShareOfModel * latency;
}

// The seconds that a grouping gains over the tasks that it replaces; 0 where one of them has no time.
double JobLedger::GainOf(const v1::Grouping& grouping) const {
  double gain = 0;
  bool is_timed = true;
  const auto add = [&](uint32_t task, double count) {
    const TaskState& state = tasks_[task];
    const double best = state.final.default_seconds > 0 ? state.final.best_seconds : state.best_seconds;
    is_timed = is_timed && best > 0;
    gain += count * best;
  };
  add(grouping.task(), static_cast<double>(grouping.count()));
  for (const v1::Grouping::Part& part : grouping.more()) add(part.task(), static_cast<double>(part.count()));
  for (const v1::Grouping::Part& part : grouping.parts())
    add(part.task(), -static_cast<double>(part.count()));
  return is_timed ? gain : 0;
}

// The faster groupings of the tasks gain this over the tasks themselves. One that replaces several tasks is
// taken instead of the groupings of these.
double JobLedger::GroupingGain() const {
  std::map<uint32_t, double> gains;  // by task: it has one grouping at most
  for (const v1::Grouping& grouping : stored_.spec().groupings()) {
    if (grouping.more().empty()) gains[grouping.task()] = std::max(gains[grouping.task()], GainOf(grouping));
  }
  double sum = 0;
  for (const auto& [task, gain] : gains) sum += gain;
  double best = sum;
  for (const v1::Grouping& grouping : stored_.spec().groupings()) {
    if (grouping.more().empty()) continue;
    double with = sum + GainOf(grouping);
    const auto replace = [&](uint32_t task) { with -= gains.count(task) > 0 ? gains.at(task) : 0; };
    replace(grouping.task());
    for (const v1::Grouping::Part& part : grouping.more()) replace(part.task());
    best = std::max(best, with);
  }
  return best;
}

// Times are compared that were taken in the same way: both in a final round, or each by itself.
void JobLedger::AddLatency(v1::JobProgress* progress) const {
  uint32_t timed = 0;
  bool all_timed = true;
  double best = 0, by_default = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskState& state = tasks_[i];
    all_timed = all_timed && (state.best_seconds > 0 || plan_.tasks[i].count == 0);
    if (state.best_seconds == 0) continue;
    ++timed;
    const bool in_round = state.final.default_seconds > 0;
    const double of_best = in_round ? state.final.best_seconds : state.best_seconds;
    double of_default = in_round ? state.final.default_seconds : state.first_seconds;
    if (of_default == 0 || state.final.default_failed) of_default = of_best;
    best += static_cast<double>(plan_.tasks[i].count) * of_best;
    by_default += static_cast<double>(plan_.tasks[i].count) * of_default;
  }
  progress->set_is_model(stored_.spec().is_model());
  progress->set_tasks_timed(timed);
  if (!stored_.spec().is_model() || !all_timed) return;
  progress->set_latency_seconds(best - GroupingGain());
  progress->set_default_latency_seconds(by_default);
}

v1::JobProgress JobLedger::Progress(bool with_tasks) const {
  v1::JobProgress progress;
  progress.set_job(id_);
  progress.set_name(stored_.spec().name());
  progress.set_target(stored_.spec().target());
  progress.set_protocol(plan_.tasks.front().protocol);
  progress.set_budget_seconds(stored_.spec().budget_seconds());
  progress.set_created_unix_micros(created_unix_micros_);
  ShowTerms(TermsOf(stored_), &progress);
  double device_seconds = 0;
  for (const auto& [name, work] : devices_) device_seconds += work.run_seconds();
  progress.set_device_seconds(device_seconds);
  for (const RefusalCount& refused : refusals_.MostFrequent()) {
    v1::JobProgress::Refusal& refusal = *progress.add_refusals();
    refusal.set_reason(refused.reason);
    refusal.set_points(refused.points);
  }
  int64_t trials = 0, searched = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskState& state = tasks_[i];
    trials += state.trials;
    searched += searches(static_cast<uint32_t>(i));
    if (!with_tasks) continue;
    v1::TaskProgress& task = *progress.add_tasks();
    task.set_workload_name(plan_.tasks[i].key.workload_name);
    task.set_workload_hash(plan_.tasks[i].key.workload_hash);
    task.set_target(plan_.tasks[i].key.target);
    task.set_count(plan_.tasks[i].count);
    task.set_trials(state.trials);
    task.set_reused(stored_tasks_[i].reused());
    const bool has_final = state.final.finalists > 0;
    task.set_best_seconds(has_final ? state.final.best_seconds : state.best_seconds);
    task.set_best_width(has_final ? state.final.best_width : state.best_width);
    task.set_best_alone_seconds(state.best_seconds);
    task.set_first_seconds(state.final.default_failed ? 0 : state.first_seconds);
    task.set_default_final_seconds(state.final.default_seconds);
    task.set_first_width(state.first_width);
    task.set_finalists(state.final.finalists);
    task.set_ties(state.final.ties);
    task.set_is_earlier_round(state.final.is_earlier);
    task.set_message(TaskOutcome(static_cast<uint32_t>(i)));
    for (const auto& [status, count] : state.outcomes) {
      v1::StatusCount& outcome = *task.add_outcomes();
      outcome.set_status(status);
      outcome.set_count(count);
    }
  }
  if (with_tasks) {
    for (const auto& [name, work] : devices_) *progress.add_devices() = work;
  }
  progress.set_trials(trials);
  progress.set_trials_planned(TrialsPlanned(stored_.spec(), searched));
  AddLatency(&progress);
  if (!with_tasks) return progress;
  for (const Milestone& milestone : milestones_.list()) {
    v1::JobProgress::Milestone& shown = *progress.add_milestones();
    shown.set_trials(milestone.trials);
    shown.set_elapsed_seconds(milestone.elapsed_seconds);
    shown.set_latency_seconds(milestone.latency_seconds);
  }
  return progress;
}

}  // namespace mycc
