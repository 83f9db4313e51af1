#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ImageOperators() { return {}; }

}  // namespace mycc::onnx
