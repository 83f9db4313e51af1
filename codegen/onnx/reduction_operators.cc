#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> ReductionOperators() { return {}; }

}  // namespace mycc::onnx
