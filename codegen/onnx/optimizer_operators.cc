#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> OptimizerOperators() { return {}; }

}  // namespace mycc::onnx
