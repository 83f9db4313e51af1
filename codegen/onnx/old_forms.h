// Nodes of opsets 1 to 6 as opset 7 writes them, so that the operators know one form. Internal to this
// folder. Thread rule: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// The node in its new form, whose inputs may be others; nullopt where it is written alike in both. Refuses
// what opset 7 cannot say. The attribute `consumed_inputs` means nothing to a compiler.
absl::StatusOr<std::optional<OnnxNode>> InNewForm(const OnnxNode& node, int64_t opset, GraphBuilder* builder,
                                                  std::vector<TypedTensor>* inputs);

}  // namespace mycc::onnx
