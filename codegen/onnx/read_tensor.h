// Turns a tensor of the file format into an array. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/onnx/model.h"
#include "codegen/onnx/onnx.pb.h"

namespace mycc::onnx {

// `folder` has the files of external data. The bytes of `tensor` are moved where that spares a copy.
absl::StatusOr<TypedConstant> ReadTensor(onnx_file::Tensor* tensor, const std::string& folder);

}  // namespace mycc::onnx
