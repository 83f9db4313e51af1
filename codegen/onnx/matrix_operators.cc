#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> MatrixOperators() { return {}; }

}  // namespace mycc::onnx
