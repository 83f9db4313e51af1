// The times of a model's kernels inside the model, for `mycc bench`: of a library that was compiled with
// --profile.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"

namespace mycc {

struct KernelTime {
  std::string kernel;
  int64_t launches = 0;
  double seconds = 0;  // of all launches in one call: the sum of their medians over many calls
};

// Calls the model for about `seconds`. The slowest kernel first.
absl::StatusOr<std::vector<KernelTime>> ProfileModel(Library* library, Arguments* arguments, double seconds);

// A table of the times, with each kernel's share.
std::string ProfileTable(const std::vector<KernelTime>& times);

}  // namespace mycc
