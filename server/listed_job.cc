#include "server/listed_job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "db/foreign_table.h"
#include "proto/names.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

constexpr size_t kMostTraceBytes = 64 << 10;
constexpr int kForeignOfTask = 8;  // where the job does not say

absl::Status Refused(const std::string& what, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("job: ", what, "; expected ", expected));
}

// The names of the workloads that are wanted; empty: all.
std::set<std::string> WantedNames(const v1::JobSpec& spec) {
  std::set<std::string> names;
  for (const v1::TaskSpec& task : spec.tasks()) names.insert(task.workload());
  return names;
}

// Whether the device that the job is for can measure the key, as the job times it. A text of another build
// that this one cannot read waits for that build.
bool IsMeasurable(const KeyText& key, const std::optional<Target>& device, v1::TimingProtocol protocol) {
  const absl::StatusOr<Target> code = ParseTarget(key.target);
  if (!code.ok() || !ParseWorkload(key.workload, "the log").ok()) return false;
  if (protocol == v1::TIMING_PROTOCOL_MODEL && code->kind != TargetKind::kCpu) return false;
  std::string why;
  return !device || IsMeasurableOn(*code, *device, &why);
}

}  // namespace

bool IsListed(const v1::JobSpec& spec) { return spec.strategy() == kListedStrategy; }
bool IsForeign(const v1::JobSpec& spec) { return spec.strategy() == kForeignStrategy; }

std::string WithName(const std::string& workload, const std::string& name) {
  absl::StatusOr<Workload> parsed = ParseWorkload(workload, "the log");
  // The name may be another's, and then is a text like any other.
  const bool is_name =
      !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
      std::ranges::all_of(name, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
  if (!parsed.ok() || !is_name) return workload;
  const std::string hash = WorkloadHash(*parsed);
  parsed->name = name;
  const std::string text = PrintWorkload(*parsed);
  const absl::StatusOr<Workload> again = ParseWorkload(text, "the log");  // a keyword is no name
  return again.ok() && WorkloadHash(*again) == hash ? text : workload;
}

void AddCandidates(const std::vector<std::string>& more, std::vector<std::string>* candidates) {
  std::set<std::string> known;
  const auto steps = [](const std::string& text) {
    const absl::StatusOr<Trace> trace = ParseTrace(text);
    return trace.ok() ? StepsKey(*trace) : text;
  };
  for (const std::string& text : *candidates) known.insert(steps(text));
  for (const std::string& text : more) {
    if (known.insert(steps(text)).second) candidates->push_back(text);
  }
}

absl::StatusOr<std::vector<std::string>> ReadCandidates(const v1::TaskSpec& spec, const std::string& origin) {
  if (spec.candidates().empty())
    return Refused(absl::StrCat(origin, " lists no candidate"), "at least one trace");
  if (spec.candidates_size() > kMostCandidatesOfTask) {
    return Refused(absl::StrCat(origin, " lists ", spec.candidates_size(), " candidates"),
                   absl::StrCat("at most ", kMostCandidatesOfTask));
  }
  std::vector<std::string> read;
  for (int i = 0; i < spec.candidates_size(); ++i) {
    const std::string& text = spec.candidates(i);
    const std::string where = absl::StrCat("candidate ", i + 1, " of ", origin);
    if (text.size() > kMostTraceBytes)
      return Refused(absl::StrCat(where, " has ", text.size(), " bytes"),
                     absl::StrCat("at most ", kMostTraceBytes));
    const absl::StatusOr<Trace> trace = ParseTrace(text);
    if (!trace.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("job: ", where, ": ", std::string(trace.status().message())));
    read.push_back(PrintTrace(*trace));
  }
  std::vector<std::string> candidates;
  AddCandidates(read, &candidates);
  return candidates;
}

absl::Status CheckForeign(const v1::JobSpec& spec) {
  if (spec.protocol() == v1::TIMING_PROTOCOL_UNSPECIFIED)
    return Refused("foreign records, and no protocol", "warm, cold or model");
  if (!spec.target().empty()) MYCC_RETURN_IF_ERROR(ParseTarget(spec.target()).status());
  for (const v1::TaskSpec& task : spec.tasks()) {
    if (task.workload().empty() || !task.candidates().empty())
      return Refused("foreign records of a task that is no name", "the name of the workloads alone");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSpec> ListForeign(const v1::JobSpec& spec, const TuningLog& log) {
  MYCC_RETURN_IF_ERROR(CheckForeign(spec));
  std::optional<Target> device;
  if (!spec.target().empty()) {
    MYCC_ASSIGN_OR_RETURN(device, ParseTarget(spec.target()));
  }
  const std::set<std::string> names = WantedNames(spec);
  const int of_task = spec.trials() > 0
                          ? static_cast<int>(std::min<uint32_t>(spec.trials(), kMostCandidatesOfTask))
                          : kForeignOfTask;
  v1::JobSpec listed = spec;
  listed.set_strategy(kListedStrategy);
  listed.clear_tasks();
  listed.clear_trials();
  MYCC_ASSIGN_OR_RETURN(const std::vector<WaitingKey> keys, WaitingKeys(log, spec.protocol()));
  int left = kMostCandidates;
  for (const WaitingKey& waiting : keys) {
    const KeyText& key = waiting.key;
    if (!names.empty() && !names.contains(key.workload_name)) continue;
    if (left == 0) break;
    if (!IsMeasurable(key, device, spec.protocol())) continue;
    MYCC_ASSIGN_OR_RETURN(
        const std::vector<ForeignRecord> records,
        WaitingForeign(log, {key.workload_hash, key.target}, spec.protocol(), std::min(of_task, left)));
    v1::TaskSpec task;
    task.set_workload(WithName(key.workload, key.workload_name));
    task.set_count(1);
    task.set_target(key.target);
    for (const ForeignRecord& foreign : records) {
      if (ParseTrace(foreign.record.trace()).ok()) task.add_candidates(foreign.record.trace());
    }
    left -= task.candidates_size();
    if (!task.candidates().empty()) *listed.add_tasks() = std::move(task);
  }
  if (!listed.tasks().empty()) return listed;
  return absl::NotFoundError(absl::StrCat("no foreign record waits that was timed under ",
                                          ProtocolName(spec.protocol()),
                                          spec.target().empty() ? "" : " and can be measured there"));
}

}  // namespace mycc
