#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> LossOperators() { return {}; }

}  // namespace mycc::onnx
