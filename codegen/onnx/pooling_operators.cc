#include "codegen/onnx/operators.h"

namespace mycc::onnx {

std::span<const Operator> PoolingOperators() { return {}; }

}  // namespace mycc::onnx
