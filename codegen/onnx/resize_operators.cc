#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ResizeOperators() { return {}; }

}  // namespace mycc::onnx
