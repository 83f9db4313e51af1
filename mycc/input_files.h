// Fills the inputs of a function from .npy files that the command line names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"

namespace mycc {

struct InputFile {
  int index;  // of the input among those with a name
  std::string path;
};
// NAME=FILE.npy, or FILE.npy alone where there is one input. Misuse, which begins with `option`, for another
// text, and for a name that no input of the function has.
absl::StatusOr<InputFile> ParseInput(const std::string& option, const std::string& input,
                                     const std::vector<std::string>& names, const std::string& function);

// Fills the inputs that are named. InvalidArgument for a file of another type or shape.
absl::Status LoadInputs(const std::string& option, const std::vector<std::string>& inputs,
                        Arguments* arguments);

}  // namespace mycc
