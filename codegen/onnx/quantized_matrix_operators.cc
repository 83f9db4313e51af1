#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> QuantizedMatrixOperators() { return {}; }

}  // namespace mycc::onnx
