// Any bytes are refused by the file's name, or are a model whose graph survives all passes.
#include <string>

#include "base/check.h"
#include "codegen/graph/interpret.h"
#include "codegen/graph/optimize.h"
#include "codegen/onnx/importer.h"
#include "codegen/program/program.h"

namespace mycc {
namespace {

constexpr double kMostPoints = 1 << 14;  // that are computed

double PointsOf(const Graph& graph) {
  double points = 0;
  for (const Node& node : graph.nodes) {
    double own = 0;
    for (const Buffer& output : node.outputs) own += static_cast<double>(output->num_elements());
    if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
      for (const Var& axis : stage->reduce_axes) own *= static_cast<double>(axis->extent);
    }
    points += own;
  }
  for (const NamedTensor& input : graph.inputs) points += static_cast<double>(input.tensor->num_elements());
  return points;
}

void Check(const Graph& graph) {
  const auto optimized = OptimizeGraph(graph, Target());
  MYCC_CHECK(optimized.ok()) << optimized.status() << "\n" << PrintGraph(graph);
  MakeProgram(*optimized);
  if (PointsOf(graph) + PointsOf(*optimized) > kMostPoints) return;
  Workload inputs{"inputs", {}, {}, {}};
  for (const NamedTensor& input : graph.inputs) inputs.inputs.push_back({input.tensor, false});
  for (const Graph* each : {&graph, &*optimized}) {
    const auto outputs = InterpretGraph(*each, RandomInputs(inputs, 1));
    MYCC_CHECK(outputs.ok()) << outputs.status() << "\n" << PrintGraph(*each);  // a read outside is an error
  }
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The folder, in which external data would be, does not exist.
  const auto graph = mycc::ImportOnnxBytes(std::string(reinterpret_cast<const char*>(data), size),
                                           "/nonexistent/fuzz.onnx", {});
  if (graph.ok()) {
    mycc::Check(*graph);
  } else {
    const std::string message(graph.status().message());
    MYCC_CHECK(message.find("fuzz.onnx") != std::string::npos) << message;
    MYCC_CHECK(graph.status().code() != absl::StatusCode::kInternal) << message;
  }
  return 0;
}
