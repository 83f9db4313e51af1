#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> MathOperators() { return {}; }

}  // namespace mycc::onnx
