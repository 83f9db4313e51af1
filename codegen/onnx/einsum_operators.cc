#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> EinsumOperators() { return {}; }

}  // namespace mycc::onnx
