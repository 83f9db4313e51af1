// Tensors of strings while a model is imported. In the graph they are tensors of handles (library_kernels.h)
// of type u64, which the kernels of texts make and take; stages only move them. Internal to this folder.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

TypedTensor ConstantTexts(GraphBuilder& g, Texts texts);
// The same of strings of the node's attributes, which must have no NUL.
absl::StatusOr<TypedTensor> TextsOf(NodeImport& n, std::vector<std::string> elements,
                                    std::vector<int64_t> shape);

// Calls a library kernel, now where all inputs are known and the outputs are not large. The outputs are
// strings or the numbers that their ONNX types say. `bytes` is the most that outputs with longer texts than
// the inputs have.
absl::StatusOr<std::vector<TypedTensor>> CallOnTexts(
    GraphBuilder& g, const std::string& function, std::vector<int64_t> attributes,
    const std::vector<TypedTensor>& inputs, const std::vector<std::pair<int, std::vector<int64_t>>>& outputs,
    int64_t bytes = 0);

// Refuses input `i` unless it is a tensor of strings.
absl::Status ExpectTexts(const NodeImport& n, size_t i);
// The first `extent` places of an axis of a known tensor, whose number is a constant.
TypedTensor FirstTexts(GraphBuilder& g, const TypedTensor& texts, int axis, const Buffer& extent);

}  // namespace mycc::onnx
