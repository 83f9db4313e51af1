#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> SliceOperators() { return {}; }

}  // namespace mycc::onnx
