#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> CastOperators() { return {}; }

}  // namespace mycc::onnx
