// Parses the language. A .te file holds one or more workloads; the grammar is in docs/language.md.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Errors are InvalidArgument "FILE:LINE:COLUMN: what is wrong; what was expected", where FILE is `origin`.
absl::StatusOr<std::vector<Workload>> ParseWorkloads(const std::string& text, const std::string& origin);
// Exactly one workload, with or without its leading version `v1`.
absl::StatusOr<Workload> ParseWorkload(const std::string& text, const std::string& origin);

}  // namespace mycc
