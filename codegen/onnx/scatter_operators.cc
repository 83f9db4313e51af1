#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ScatterOperators() { return {}; }

}  // namespace mycc::onnx
