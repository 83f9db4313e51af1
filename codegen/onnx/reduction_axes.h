// The axes of the Reduce operators: an attribute, a constant, or an input that is known only when the model
// runs. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "codegen/graph/builder.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

struct ReducedAxes {
  std::vector<int64_t> axes;  // sorted
  bool keeps_axes = true;
};

std::vector<int64_t> ResultShape(const std::vector<int64_t>& shape, const ReducedAxes& reduced);

// Sets output 0 to what `reduce` makes of the axes. Axes that are not known yet are supported where the model
// declares the output's shape: all that give this shape are computed, and the input selects one.
absl::Status ReduceInput(NodeImport& n, const std::function<Buffer(const ReducedAxes&)>& reduce);

}  // namespace mycc::onnx
