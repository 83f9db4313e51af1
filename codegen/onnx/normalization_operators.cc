#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> NormalizationOperators() { return {}; }

}  // namespace mycc::onnx
