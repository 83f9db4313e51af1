#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ShapeOperators() { return {}; }

}  // namespace mycc::onnx
