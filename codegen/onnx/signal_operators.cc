#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> SignalOperators() { return {}; }

}  // namespace mycc::onnx
