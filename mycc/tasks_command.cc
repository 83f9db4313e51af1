// `mycc tasks`: lists the distinct workloads of a file with their counts and sizes.
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
};

// Workloads that differ in names alone are one task.
std::vector<Task> DistinctTasks(const std::vector<Workload>& workloads) {
  std::vector<Task> tasks;
  std::map<std::string, size_t> index;
  for (const Workload& workload : workloads) {
    const std::string hash = WorkloadHash(workload);
    const auto [it, is_new] = index.try_emplace(hash, tasks.size());
    if (is_new) {
      tasks.push_back({workload, hash});
    } else {
      tasks[it->second].workload.count += workload.count;
    }
  }
  return tasks;
}

std::string TasksText(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks)
    absl::StrAppend(&text, text.empty() ? "" : "\n", PrintWorkload(task.workload));
  return text;
}

std::string TasksJson(const std::vector<Task>& tasks) {
  std::string lines;
  for (const Task& task : tasks) {
    const nlohmann::ordered_json row = {
        {"workload_name", task.workload.name}, {"workload_hash", task.hash},
        {"count", task.workload.count},        {"flops", CountFlops(task.workload)},
        {"bytes", CountBytes(task.workload)},  {"workload", CanonicalText(task.workload)}};
    lines += row.dump() + "\n";
  }
  return lines;
}

std::string TasksTable(const std::vector<Task>& tasks) {
  std::vector<std::vector<std::string>> rows = {{"task", "count", "GFLOP", "MB", "hash"}};
  double flops = 0;
  int64_t count = 0;
  for (const Task& task : tasks) {
    const double own = CountFlops(task.workload);
    rows.push_back({task.workload.name, absl::StrCat(task.workload.count), absl::StrFormat("%.4f", own / 1e9),
                    absl::StrFormat("%.2f", CountBytes(task.workload) / 1e6), task.hash.substr(0, 12)});
    flops += own * static_cast<double>(task.workload.count);
    count += task.workload.count;
  }
  return absl::StrCat(
      FormatTable(rows, {1, 2, 3}),
      absl::StrFormat("%d distinct workloads, %d in all, %.4f GFLOP\n", tasks.size(), count, flops / 1e9));
}

}  // namespace

absl::Status TasksCommand(const TasksOptions& options, std::ostream& out) {
  if (options.json && IsStandardOutput(options.output))
    return Misuse(absl::StrCat("--json: expected no -o ", options.output,
                               ", which takes the standard output for the workloads"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, ReadTasks(options.model, target));
  const std::vector<Task> tasks = DistinctTasks(workloads);
  if (IsStandardOutput(options.output)) {
    out << TasksText(tasks);
    return absl::OkStatus();
  }
  if (!options.output.empty()) MYCC_RETURN_IF_ERROR(WriteFileAtomically(options.output, TasksText(tasks)));
  out << (options.json ? TasksJson(tasks) : TasksTable(tasks));
  return absl::OkStatus();
}

}  // namespace mycc
