// The inputs of a model whose values are known when it is compiled. Internal to this folder. Thread rule:
// pure functions, if the functions in the options' values are pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/onnx/importer.h"
#include "codegen/onnx/model.h"

namespace mycc::onnx {

// The values of inputs, by name. InvalidArgument, beginning with the option, for a name that is no input, for
// a value of another type or shape than declared or than the options' shape, and for one that is not to be
// had.
absl::StatusOr<std::map<std::string, Constant>> KnownInputs(const std::vector<const DeclaredValue*>& inputs,
                                                            const OnnxOptions& options);

}  // namespace mycc::onnx
