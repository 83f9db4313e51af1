// Decision trees: see tree_ensemble.cc. Internal to this folder. Thread rule: as NodeImport's.
#pragma once

#include "absl/status/status.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

absl::Status TreeEnsemble(NodeImport& n);

}  // namespace mycc::onnx
