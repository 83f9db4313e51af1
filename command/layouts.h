// Chooses how the images of a model are stored: with channels last, or in planes as ONNX has them. The whole
// model is cut into kernels in both ways, so that the cost of transposes counts. Without measured times the
// analytic model of the default schedules decides, with a margin, as its error is larger for kernels that
// differ so much. The other layout is an alternative, to be measured. Thread rule: functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"
#include "codegen/graph/optimize.h"
#include "codegen/program/program.h"
#include "codegen/target/target.h"

namespace mycc {

struct LaidOutModel {
  std::string layout;  // "channels_last" or "planes"
  Graph graph;
  ModelProgram program;
};

// The model in each of its layouts, the preferred one first; a single one where the layouts are the same. The
// program of the preferred one has the other among its alternatives where that may be faster.
absl::StatusOr<std::vector<LaidOutModel>> LayOut(Graph imported, const Target& target,
                                                 const GraphOptions& options);

// MakeProgram, in which what the target's rules compute in one pass is one kernel.
ModelProgram MakeProgramFor(const Target& target, const Graph& graph,
                            const std::vector<std::string>& chosen = {});

// The names of alternatives that are layouts: "layout:planes", of the layout "planes".
bool IsLayoutAlternative(const std::string& name);
std::string LayoutOf(const std::string& name);

}  // namespace mycc
