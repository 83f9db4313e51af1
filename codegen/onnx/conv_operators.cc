#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ConvOperators() { return {}; }

}  // namespace mycc::onnx
