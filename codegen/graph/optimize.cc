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
    {"graph.simplify", Simplify},                 // arithmetic in fewer operations
    {"graph.remove_copies", RemoveCopies},        // what moves nothing
    {"graph.common_nodes", MergeCommonNodes},     // equal computations become one
    {"graph.unit_reshapes", MoveUnitReshapes},    // those of dimensions of one element
    {"graph.fold_scales", FoldScales},            // factors of channels go into weights
    {"graph.channels_last", ChooseChannelsLast},  // the layout of images
    {"graph.inline_moves", InlineMoves},          // transposes, slices, broadcasts
    {"graph.dead_nodes", DropDeadNodes},          // what no output needs
    {"graph.push_transposes", PushTransposes},    // those that are left
    {"graph.remove_copies_again", RemoveCopies},
    {"graph.dead_nodes_again", DropDeadNodes},
    {"graph.merge_products", MergeProducts},  // products that share an input
};

}  // namespace

std::vector<std::string> GraphPassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : kPasses) names.push_back(pass.name);
  return names;
}

absl::StatusOr<Graph> OptimizeGraph(Graph graph, const Target& target) {
  for (const GraphPass& pass : kPasses) {
    const TimedStep timed(pass.name);
    graph = pass.run(std::move(graph), target);
    if (GetPassDebug().print_after == pass.name) std::fputs(PrintGraph(graph).c_str(), stderr);
    if (absl::Status status = VerifyGraph(graph); !status.ok()) {
      return absl::InternalError(
          absl::StrCat("after the pass ", pass.name, ": ", std::string(status.message())));
    }
  }
  return graph;
}

}  // namespace mycc
