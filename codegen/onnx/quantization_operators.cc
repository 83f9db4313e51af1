#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> QuantizationOperators() { return {}; }

}  // namespace mycc::onnx
