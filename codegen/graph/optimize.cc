#include "codegen/graph/optimize.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/ir/debug.h"

namespace mycc {
namespace {

struct GraphPass {
  const char* name;
  Graph (*run)(Graph graph, const Target& target);
};

// The table of contents.
constexpr GraphPass kPasses[] = {
    {"graph.inline_constants", InlineConstants},  // single numbers become literals
    {"graph.remove_copies", RemoveCopies},        // what moves nothing
    {"graph.common_nodes", MergeCommonNodes},     // equal computations become one
    {"graph.unit_reshapes", MoveUnitReshapes},    // those of dimensions of one element
    {"graph.channels_last", ChooseChannelsLast},  // the layout of images
    {"graph.inline_moves", InlineMoves},          // transposes, slices, broadcasts
    {"graph.dead_nodes", DropDeadNodes},          // what no output needs
    {"graph.push_transposes", PushTransposes},    // those that are left
    {"graph.remove_copies_again", RemoveCopies}, {"graph.dead_nodes_again", DropDeadNodes},
};

// Only for options.narrow; the last one, so that kernels are known.
constexpr const char* kMixedPrecision = "graph.mixed_precision";

absl::Status FinishPass(const std::string& name, const Graph& graph) {
  if (GetPassDebug().print_after == name) std::fputs(PrintGraph(graph).c_str(), stderr);
  const absl::Status status = VerifyGraph(graph);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat("after the pass ", name, ": ", std::string(status.message())));
}

}  // namespace

std::vector<std::string> GraphPassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : kPasses) names.push_back(pass.name);
  names.push_back(kMixedPrecision);
  return names;
}

absl::StatusOr<Graph> OptimizeGraph(Graph graph, const Target& target, const GraphOptions& options) {
  for (const GraphPass& pass : kPasses) {
    const TimedStep timed(pass.name);
    graph = pass.run(std::move(graph), target);
    MYCC_RETURN_IF_ERROR(FinishPass(pass.name, graph));
  }
  if (options.narrow) {
    const TimedStep timed(kMixedPrecision);
    graph = MixPrecision(std::move(graph), *options.narrow);
    MYCC_RETURN_IF_ERROR(FinishPass(kMixedPrecision, graph));
  }
  return graph;
}

}  // namespace mycc
