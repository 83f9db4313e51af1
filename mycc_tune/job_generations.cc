#include "mycc_tune/job_generations.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "base/status.h"
#include "command/table.h"
#include "command/times.h"
#include "db/job_store.h"
#include "proto/names.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

absl::Status DamagedState(const std::string& job, uint32_t task) {
  return absl::DataLossError(absl::StrCat("job ", job, ": the search state of task ", task, " is damaged"));
}

GenerationFacts FactsOf(uint32_t task, uint32_t generation, const v1::SearchState::Generation& state) {
  GenerationFacts facts;
  facts.task = task;
  facts.generation = generation;
  facts.candidates = state.candidates_size();
  if (state.has_model()) facts.model = state.model();
  facts.refusals.assign(state.refusals().begin(), state.refusals().end());
  return facts;
}

// The generations of an older build are in the states of their tasks, without their order among the tasks.
absl::Status AddOlderGenerations(const std::vector<Task>& tasks, std::vector<GenerationFacts>* generations) {
  for (const Task& task : tasks) {
    v1::SearchState state;
    if (!state.ParseFromString(task.search_state)) return DamagedState(task.job, task.index);
    for (int g = 0; g < state.generations_size(); ++g)
      generations->push_back(FactsOf(task.index, static_cast<uint32_t>(g), state.generations(g)));
  }
  return absl::OkStatus();
}

void AddResult(const v1::MeasureResult& result, GenerationFacts* facts) {
  ++facts->measured;
  if (result.status() != v1::MEASURE_STATUS_OK) {
    ++facts->failures[StatusName(result.status())];
    return;
  }
  const double seconds = result.timing().seconds();
  if (seconds > 0 && (facts->best_seconds == 0 || seconds < facts->best_seconds))
    facts->best_seconds = seconds;
}

absl::Status AddResults(const JobStore& store, const std::string& job, size_t tasks,
                        std::vector<GenerationFacts>* generations) {
  std::map<std::pair<uint32_t, uint32_t>, GenerationFacts*> known;
  for (GenerationFacts& facts : *generations) known[{facts.task, facts.generation}] = &facts;
  for (uint32_t task = 0; task < tasks; ++task) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<Trial> trials, store.LoadTrials(job, task));
    for (const Trial& trial : trials) {
      const auto found = known.find({task, trial.generation});
      if (found != known.end() && trial.result) AddResult(*trial.result, found->second);
    }
  }
  return absl::OkStatus();
}

const char* StateWord(JobState state) {
  switch (state) {
    case JobState::kRunning: return "not ended";
    case JobState::kDone: return "done";
    case JobState::kCancelled: return "cancelled";
    case JobState::kFailed: return "failed";
  }
  return "unknown";
}

std::string CountsText(const std::map<std::string, int64_t>& counts) {
  if (counts.empty()) return "-";
  return absl::StrJoin(counts, ", ", [](std::string* text, const auto& count) {
    absl::StrAppend(text, count.second, " ", count.first);
  });
}

std::string RefusalsText(const GenerationFacts& facts) {
  if (facts.refusals.empty()) return "-";
  return absl::StrJoin(facts.refusals, "; ", [](std::string* text, const auto& refusal) {
    absl::StrAppend(text, refusal.points(), " ", refusal.reason());
  });
}

std::string GenerationTable(const std::vector<GenerationFacts>& generations) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "generation", "at", "candidates", "failed", "best", "refused", "why points were refused"}};
  for (const GenerationFacts& facts : generations) {
    rows.push_back({absl::StrCat(facts.task), absl::StrCat(facts.generation),
                    absl::StrFormat("%.1f s", facts.elapsed_seconds), absl::StrCat(facts.candidates),
                    CountsText(facts.failures),
                    facts.best_seconds > 0 ? FormatSeconds(facts.best_seconds) : "-",
                    absl::StrCat(facts.refused()), RefusalsText(facts)});
  }
  return FormatTable(rows, {0, 1, 2, 3, 5, 6});
}

void WriteJobText(const Job& job, const std::string& name, const std::vector<Task>& tasks,
                  const std::vector<GenerationFacts>& generations, std::ostream& out) {
  out << "job " << job.id << (name.empty() ? "" : ", ") << name << ": " << StateWord(job.state);
  if (!job.message.empty()) out << ", " << job.message;
  out << "\n";
  for (const Task& task : tasks)
    out << "task " << task.index << ": " << task.key.workload_name << " " << task.key.workload_hash << ", "
        << task.key.target << (task.outcome.empty() ? "" : ", ") << task.outcome << "\n";
  if (generations.empty()) {
    out << "no generations: none was proposed, or `log gc` has deleted them\n";
    return;
  }
  int64_t candidates = 0, failed = 0, refused = 0;
  for (const GenerationFacts& facts : generations) {
    candidates += facts.candidates;
    failed += facts.failed();
    refused += facts.refused();
  }
  out << "\n"
      << GenerationTable(generations) << "\n"
      << "proposed: " << HowMany(candidates, "candidate") << "; failed: " << failed
      << "; refused before measurement: " << HowMany(refused, "other point") << "\n";
}

void WriteJobJson(const Job& job, const std::string& name, const std::vector<Task>& tasks,
                  const std::vector<GenerationFacts>& generations, std::ostream& out) {
  ordered_json shown{{"job", job.id},
                     {"name", name},
                     {"state", StateWord(job.state)},
                     {"message", job.message},
                     {"tasks", ordered_json::array()},
                     {"generations", GenerationsJson(generations)}};
  for (const Task& task : tasks) {
    shown["tasks"].push_back({{"workload_name", task.key.workload_name},
                              {"workload_hash", task.key.workload_hash},
                              {"target", task.key.target},
                              {"message", task.outcome}});
  }
  out << shown.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

int64_t GenerationFacts::failed() const {
  int64_t sum = 0;
  for (const auto& [status, count] : failures) sum += count;
  return sum;
}

int64_t GenerationFacts::refused() const {
  int64_t sum = 0;
  for (const v1::SearchState::Generation::Refusal& refusal : refusals) sum += refusal.points();
  return sum;
}

ordered_json GenerationsJson(const std::vector<GenerationFacts>& generations) {
  ordered_json rows = ordered_json::array();
  for (const GenerationFacts& facts : generations) {
    ordered_json refusals = ordered_json::array();
    for (const v1::SearchState::Generation::Refusal& refusal : facts.refusals)
      refusals.push_back({{"reason", refusal.reason()}, {"points", refusal.points()}});
    rows.push_back({{"task", facts.task},
                    {"generation", facts.generation},
                    {"elapsed_seconds", facts.elapsed_seconds},
                    {"candidates", facts.candidates},
                    {"measured", facts.measured},
                    {"failures", facts.failures},
                    {"best_seconds", facts.best_seconds > 0 ? ordered_json(facts.best_seconds) : nullptr},
                    {"model", facts.model ? ordered_json(*facts.model) : nullptr},
                    {"refused", facts.refused()},
                    {"refusals", std::move(refusals)}});
  }
  return rows;
}

absl::StatusOr<std::vector<GenerationFacts>> ReadGenerations(TuningLog* log, const std::string& job) {
  const JobStore store(log);
  MYCC_RETURN_IF_ERROR(store.GetJob(job).status());
  MYCC_ASSIGN_OR_RETURN(const std::vector<Task> tasks, store.LoadTasks(job));
  std::vector<GenerationFacts> generations;
  MYCC_RETURN_IF_ERROR(AddOlderGenerations(tasks, &generations));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Generation> stored, store.LoadGenerations(job));
  for (const Generation& generation : stored) {
    v1::SearchState::Generation state;
    if (!state.ParseFromString(generation.state)) return DamagedState(job, generation.task);
    generations.push_back(FactsOf(generation.task, generation.generation, state));
    generations.back().elapsed_seconds = generation.elapsed_seconds;
  }
  MYCC_RETURN_IF_ERROR(AddResults(store, job, tasks.size(), &generations));
  return generations;
}

absl::Status ShowJob(TuningLog* log, const std::string& job, bool json, std::ostream& out) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(const Job stored, store.GetJob(job));
  v1::StoredJob spec;
  if (!spec.ParseFromString(stored.spec))
    return absl::DataLossError(absl::StrCat("job ", job, ": its spec is damaged"));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Task> tasks, store.LoadTasks(job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<GenerationFacts> generations, ReadGenerations(log, job));
  (json ? WriteJobJson : WriteJobText)(stored, spec.spec().name(), tasks, generations, out);
  return absl::OkStatus();
}

}  // namespace mycc
