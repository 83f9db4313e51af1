#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> SelectionOperators() { return {}; }

}  // namespace mycc::onnx
