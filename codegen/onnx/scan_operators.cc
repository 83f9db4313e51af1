#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ScanOperators() { return {}; }

}  // namespace mycc::onnx
