#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> GatherOperators() { return {}; }

}  // namespace mycc::onnx
