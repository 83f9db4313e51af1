#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ComparisonOperators() { return {}; }

}  // namespace mycc::onnx
