// The removal of nodes that no output needs, as a pass.
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {

Graph DropDeadNodes(Graph graph, const Target&) {
  RemoveDeadNodes(&graph);
  return graph;
}

}  // namespace mycc
