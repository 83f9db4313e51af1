#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> RecurrentOperators() { return {}; }

}  // namespace mycc::onnx
