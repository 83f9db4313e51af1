#include "codegen/graph/optimize.h"

#include <cstdio>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/ir/debug.h"

namespace mycc {
namespace {

struct GraphPass {
  const char* name;
  Graph (*run)(Graph graph, const Target& target, const GraphOptions& options);
};

// A pass that runs with any options.
template <Graph (*pass)(Graph, const Target&)>
Graph Always(Graph graph, const Target& target, const GraphOptions&) {
  return pass(std::move(graph), target);
}

Graph IfNarrow(Graph graph, const Target&, const GraphOptions& options) {
  return options.narrow ? MixPrecision(std::move(graph), *options.narrow) : graph;
}

Graph IfChannelsLast(Graph graph, const Target& target, const GraphOptions& options) {
  return options.images == ImageLayout::kChannelsLast ? ChooseChannelsLast(std::move(graph), target) : graph;
}

// The table of contents: first what holds for every layout of images.
constexpr GraphPass kPreparing[] = {
    {"graph.inline_constants", Always<InlineConstants>},    // single numbers become literals
    {"graph.simplify", Always<Simplify>},                   // arithmetic in fewer operations
    {"graph.remove_copies", Always<RemoveCopies>},          // what moves nothing
    {"graph.common_nodes", Always<MergeCommonNodes>},       // equal computations become one
    {"graph.product_factors", Always<MoveProductFactors>},  // those of operands
    {"graph.remove_unscaled", Always<RemoveCopies>},        // what they leave
    {"graph.views", Always<FindViews>},                     // reshapes of moved elements
    {"graph.unit_reshapes", Always<MoveUnitReshapes>},      // those of dimensions of one element
    {"graph.row_reshapes", Always<MoveRowReshapes>},        // those of the rows of a product
    {"graph.fold_scales", Always<FoldScales>},              // factors of channels go into weights
};
constexpr GraphPass kLayingOut[] = {
    {"graph.channels_last", IfChannelsLast},            // the layout of images
    {"graph.inline_moves", Always<InlineMoves>},        // transposes, slices, broadcasts
    {"graph.dead_nodes", Always<DropDeadNodes>},        // what no output needs
    {"graph.push_transposes", Always<PushTransposes>},  // those that are left
    {"graph.remove_copies_again", Always<RemoveCopies>},
    {"graph.dead_nodes_again", Always<DropDeadNodes>},
    {"graph.mixed_precision", IfNarrow},              // once kernels are known
    {"graph.merge_products", Always<MergeProducts>},  // those that share an input
};

absl::Status FinishPass(const std::string& name, const Graph& graph) {
  if (GetPassDebug().print_after == name) std::fputs(PrintGraph(graph).c_str(), stderr);
  const absl::Status status = VerifyGraph(graph);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat("after the pass ", name, ": ", std::string(status.message())));
}

absl::StatusOr<Graph> RunPasses(std::span<const GraphPass> passes, Graph graph, const Target& target,
                                const GraphOptions& options) {
  for (const GraphPass& pass : passes) {
    const TimedStep timed(pass.name);
    graph = pass.run(std::move(graph), target, options);
    MYCC_RETURN_IF_ERROR(FinishPass(pass.name, graph));
  }
  return graph;
}

}  // namespace

std::vector<std::string> GraphPassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : kPreparing) names.push_back(pass.name);
  for (const GraphPass& pass : kLayingOut) names.push_back(pass.name);
  return names;
}

absl::StatusOr<Graph> PrepareGraph(Graph graph, const Target& target, const GraphOptions& options) {
  return RunPasses(kPreparing, std::move(graph), target, options);
}

absl::StatusOr<Graph> LayOutGraph(Graph prepared, const Target& target, const GraphOptions& options) {
  return RunPasses(kLayingOut, std::move(prepared), target, options);
}

absl::StatusOr<Graph> OptimizeGraph(Graph graph, const Target& target, const GraphOptions& options) {
  MYCC_ASSIGN_OR_RETURN(graph, PrepareGraph(std::move(graph), target, options));
  return LayOutGraph(std::move(graph), target, options);
}

}  // namespace mycc
