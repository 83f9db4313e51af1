// Slices and pads whose limits are no constants but read when the model runs. The shape of the result is the
// one that the model declares. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// The shape that the model declares for output 0, where input `i`, which would give it, is not known; else
// null.
const std::vector<int64_t>* ShapeInsteadOf(const NodeImport& n, size_t i);

// Input 0 from starts (1), with axes (3) and steps (4), to this shape.
absl::StatusOr<Buffer> SlicedByReads(NodeImport& n, const std::vector<int64_t>& shape);
// Input 0 with pads (1) on axes (3), in a mode of the operator Pad, to this shape.
absl::StatusOr<Buffer> PaddedByReads(NodeImport& n, const std::string& mode, const Expr& value,
                                     const std::vector<int64_t>& shape);

}  // namespace mycc::onnx
