// `mycc tasks`: lists the distinct workloads of a file with their counts and sizes.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "command/misuse.h"
#include "command/model.h"
#include "command/sources.h"
#include "command/table.h"
#include "mycc/commands.h"

namespace mycc {
namespace {

struct Task {
  Workload workload;  // the first with this hash; its count is that of all
  std::string hash;
  // For what is launched in other groupings alone: the kernels in whose place.
  std::vector<std::string> instead_of;
};

// Workloads that differ in names alone are one task.
std::vector<Task> DistinctTasks(const Tasks& all) {
  std::vector<Task> tasks;
  std::map<std::string, size_t> index;
  const auto add = [&](const Workload& workload) {
    const std::string hash = WorkloadHash(workload);
    const auto [it, is_new] = index.try_emplace(hash, tasks.size());
    if (is_new) tasks.push_back({workload, hash, {}});
    return std::pair(&tasks[it->second], is_new);
  };
  for (const Workload& workload : all.workloads) {
    const auto [task, is_new] = add(workload);
    if (!is_new) task->workload.count += workload.count;
  }
  for (const Alternative& alternative : all.alternatives) {
    for (const Workload& part : alternative.parts) {
      const auto [task, is_new] = add(part);
      if (!is_new && task->instead_of.empty()) continue;  // a kernel of the model
      if (!is_new) task->workload.count += part.count;
      for (const Workload& replaced : alternative.instead_of) task->instead_of.push_back(replaced.name);
    }
  }
  return tasks;
}

// A comment on what another grouping launches.
std::string PlaceLine(const Task& task) {
  if (task.instead_of.empty()) return "";
  return absl::StrCat("# in place of ", absl::StrJoin(task.instead_of, ", "), "\n");
}

std::string TasksText(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks)
    absl::StrAppend(&text, text.empty() ? "" : "\n", PlaceLine(task), PrintWorkload(task.workload));
  return text;
}

std::string TasksJson(const std::vector<Task>& tasks) {
  std::string lines;
  for (const Task& task : tasks) {
    nlohmann::ordered_json row = {
        {"workload_name", task.workload.name}, {"workload_hash", task.hash},
        {"count", task.workload.count},        {"flops", CountFlops(task.workload)},
        {"bytes", CountBytes(task.workload)},  {"workload", CanonicalText(task.workload)}};
    if (!task.instead_of.empty()) row["instead_of"] = task.instead_of;
    lines += row.dump() + "\n";
  }
  return lines;
}

std::string TasksTable(const std::vector<Task>& tasks) {
  std::vector<std::vector<std::string>> rows = {{"task", "count", "GFLOP", "MB", "hash"}};
  const auto is_own = [](const Task& task) { return task.instead_of.empty(); };
  const auto own_tasks = std::ranges::count_if(tasks, is_own);
  const size_t others = tasks.size() - own_tasks;
  if (others > 0) rows[0].push_back("in place of");
  double flops = 0;
  int64_t count = 0;
  for (const Task& task : tasks) {
    const double own = CountFlops(task.workload);
    rows.push_back({task.workload.name, absl::StrCat(task.workload.count), absl::StrFormat("%.4f", own / 1e9),
                    absl::StrFormat("%.2f", CountBytes(task.workload) / 1e6), task.hash.substr(0, 12)});
    if (others > 0) rows.back().push_back(absl::StrJoin(task.instead_of, ", "));
    if (!is_own(task)) continue;
    flops += own * static_cast<double>(task.workload.count);
    count += task.workload.count;
  }
  return absl::StrCat(
      FormatTable(rows, {1, 2, 3}),
      absl::StrFormat("%d distinct workloads, %d in all, %.4f GFLOP", own_tasks, count, flops / 1e9),
      others > 0 ? absl::StrCat("; ", others, " of other groupings") : "", "\n");
}

}  // namespace

absl::Status TasksCommand(const TasksOptions& options, std::ostream& out) {
  if (options.json && IsStandardOutput(options.output))
    return Misuse(absl::StrCat("--json: expected no -o ", options.output,
                               ", which takes the standard output for the workloads"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
  MYCC_ASSIGN_OR_RETURN(const Tasks all, ReadTasks(options.model, target));
  const std::vector<Task> tasks = DistinctTasks(all);
  if (IsStandardOutput(options.output)) {
    out << TasksText(tasks);
    return absl::OkStatus();
  }
  if (!options.output.empty()) MYCC_RETURN_IF_ERROR(WriteFileAtomically(options.output, TasksText(tasks)));
  out << (options.json ? TasksJson(tasks) : TasksTable(tasks));
  return absl::OkStatus();
}

}  // namespace mycc
