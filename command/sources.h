// Reads the arguments that most commands take: a file of workloads, and a target's text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The workloads of a .te file. The error counts the problems of the text, and lists them with their lines.
absl::StatusOr<std::vector<Workload>> ReadWorkloads(const std::string& file);
// A target's text, a preset's name, `host` for this machine's CPU, or `cuda` and `cuda:1` for its GPUs.
// Misuse for another text; NotFound when this machine has no such GPU.
absl::StatusOr<Target> ReadTarget(const std::string& text);

}  // namespace mycc
