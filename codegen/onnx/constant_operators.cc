#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ConstantOperators() { return {}; }

}  // namespace mycc::onnx
