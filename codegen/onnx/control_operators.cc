#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ControlOperators() { return {}; }

}  // namespace mycc::onnx
