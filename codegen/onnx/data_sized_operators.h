// Operators whose outputs have a size that depends on data; see data_sized_operators.cc. Internal to this
// folder. Thread rule: as NodeImport's.
#pragma once

#include "absl/status/status.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

absl::Status Compress(NodeImport& n);
absl::Status NonMaxSuppression(NodeImport& n);
absl::Status NonZero(NodeImport& n);
absl::Status Unique(NodeImport& n);

}  // namespace mycc::onnx
