#include "codegen/workload/validate.h"

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/workload/check.h"
#include "codegen/workload/index.h"
#include "codegen/workload/limits.h"

namespace mycc {
namespace {

// Counts the writes of each tensor; names must be distinct.
std::string NamesProblem(const Workload& workload) {
  std::unordered_set<std::string> names;
  BufferSet outputs;
  const auto claim = [&](const Buffer& tensor) {
    std::string problem = NameProblem(tensor->name);
    if (problem.empty()) problem = ShapeProblem(tensor->shape);
    if (problem.empty() && !names.insert(tensor->name).second)
      problem = absl::StrCat("two tensors are called `", tensor->name, "`");
    return problem;
  };
  for (const Argument& input : workload.inputs) {
    if (std::string problem = claim(input.tensor); !problem.empty()) return problem;
  }
  for (const Buffer& output : workload.outputs) {
    if (std::string problem = claim(output); !problem.empty()) return problem;
    outputs.insert(output.get());
  }
  for (const Stage& stage : workload.stages) {
    if (outputs.count(stage.output.get()) > 0) continue;
    if (std::string problem = claim(stage.output); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace

std::string WorkloadProblem(const Workload& workload) {
  if (std::string problem = NameProblem(workload.name); !problem.empty()) return problem;
  if (workload.outputs.empty())
    return absl::StrCat("`", workload.name, "` has no output; expected at least one");
  if (workload.count < 1)
    return absl::StrCat("`", workload.name, "` occurs ", workload.count, " times; expected 1 or more");
  if (workload.stages.size() > kMaxStages)
    return absl::StrCat("more than ", kMaxStages, " stages; expected several workloads");
  if (std::string problem = NamesProblem(workload); !problem.empty()) return problem;
  std::unordered_map<const BufferNode*, int> writes;
  int depth = 0;
  for (const Stage& stage : workload.stages) {
    ++writes[stage.output.get()];
    depth += DepthOf(stage.value);
  }
  if (depth > kMaxTotalDepth)
    return absl::StrCat("expressions of more than ", kMaxTotalDepth,
                        " levels in all; expected several workloads");
  for (const Buffer& output : workload.outputs) {
    const int count = writes[output.get()];
    if (count != 1)
      return absl::StrCat("the output `", output->name, "` is written by ", count, " stages; expected one");
  }
  for (const auto& [tensor, count] : writes) {
    if (count > 1) return absl::StrCat("`", tensor->name, "` is written by ", count, " stages; expected one");
  }
  return "";
}

absl::Status Validate(const Workload& workload) {
  if (const std::string problem = WorkloadProblem(workload); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("workload ", workload.name, ": ", problem));
  }
  BufferSet readable;
  for (const Argument& input : workload.inputs) readable.insert(input.tensor.get());
  for (const Stage& stage : workload.stages) {
    if (const auto problem = CheckStage(stage, readable)) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload ", workload.name, ", stage ", stage.output->name, ": ", problem->message));
    }
    readable.insert(stage.output.get());
  }
  return absl::OkStatus();
}

}  // namespace mycc
