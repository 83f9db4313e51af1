// The passes over a graph, between import and its cutting into kernels. Each has its own file in passes/.
// With MYCC_PRINT_AFTER=graph.NAME the graph is printed after the pass; the result of each is verified.
// Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"
#include "codegen/target/target.h"

namespace mycc {

// How images are stored, which ONNX has as planes of one channel each.
enum class ImageLayout : uint8_t { kChannelsLast, kPlanes };

struct GraphOptions {
  // bf16 or f16: products take operands of this type, and accumulate in f32. None: all types stay.
  std::optional<DType> narrow = std::nullopt;
  ImageLayout images = ImageLayout::kChannelsLast;
};

// Runs all passes that the options ask for. An error is one of the compiler's own: a pass broke the graph.
absl::StatusOr<Graph> OptimizeGraph(Graph graph, const Target& target, const GraphOptions& options = {});

// The same in two steps, for several layouts of one graph: the passes before the layout of images is chosen,
// and that choice with the passes behind it.
absl::StatusOr<Graph> PrepareGraph(Graph graph, const Target& target, const GraphOptions& options);
absl::StatusOr<Graph> LayOutGraph(Graph prepared, const Target& target, const GraphOptions& options);

// Whether there are images whose channels would stand last (passes/channels_last.cc).
bool HasImages(const Graph& prepared, const Target& target);

// "graph.NAME" of each pass, in the order in which they run.
std::vector<std::string> GraphPassNames();

}  // namespace mycc
