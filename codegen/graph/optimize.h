// The passes over a graph, between import and its cutting into kernels. Each has its own file in passes/.
// With MYCC_PRINT_AFTER=graph.NAME the graph is printed after the pass; the result of each is verified.
// Thread rule: functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"
#include "codegen/target/target.h"

namespace mycc {

// Runs all passes. An error is one of the compiler's own: a pass broke the graph.
absl::StatusOr<Graph> OptimizeGraph(Graph graph, const Target& target);

// "graph.NAME" of each pass, in the order in which they run.
std::vector<std::string> GraphPassNames();

}  // namespace mycc
