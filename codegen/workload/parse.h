// Parses the tensor language. A .te file holds one or more workloads; the grammar is in docs/language.md.
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/diagnostic.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The content of a text: its workloads, or the problems found in it.
struct ParsedText {
  std::vector<Workload> workloads;   // empty when there is a problem
  std::vector<Diagnostic> problems;  // the first ones, ordered by position
  size_t left_out = 0;               // the number of further problems
};
ParsedText ParseText(const std::string& text);

// The same for callers that report one problem: InvalidArgument "FILE:LINE:COLUMN: what is wrong; what
// was expected", where FILE is `origin`.
absl::StatusOr<std::vector<Workload>> ParseWorkloads(const std::string& text, const std::string& origin);
// Exactly one workload, with or without its leading version `v1`.
absl::StatusOr<Workload> ParseWorkload(const std::string& text, const std::string& origin);

}  // namespace mycc
