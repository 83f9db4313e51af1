#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> AttentionOperators() { return {}; }

}  // namespace mycc::onnx
