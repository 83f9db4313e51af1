#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ActivationOperators() { return {}; }

}  // namespace mycc::onnx
