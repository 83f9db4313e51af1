// BatchNormalization, which is part of the family of normalization_operators.cc. Internal to this folder.
// Thread rule: a pure function.
#pragma once

#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

absl::Status BatchNormalization(NodeImport& n);

}  // namespace mycc::onnx
