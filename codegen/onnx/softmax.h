// Softmax over axes of a tensor, as other operators use it. Internal to this folder. Thread rule: pure
// functions.
#pragma once

#include <vector>

#include "codegen/graph/builder.h"

namespace mycc::onnx {

// The results are f32 where the tensor is a narrower float.
Buffer SoftmaxOver(GraphBuilder& g, const Buffer& x, const std::vector<int64_t>& axes);
Buffer LogSoftmaxOver(GraphBuilder& g, const Buffer& x, const std::vector<int64_t>& axes);

}  // namespace mycc::onnx
