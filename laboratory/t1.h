// Reads T1 files, in which the auto-tuning community describes a tuning problem (schema 1.0.0): the
// parameters, their values and the constraints of its space. The rest of the file is for those who run the
// kernel.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/constrained_space.h"

namespace mycc {

struct T1Space {
  std::string name;  // "convolution"
  ConstrainedSpace space;
  std::vector<int> defaults;  // a choice for each parameter; empty where the file does not give all
};

// `where` is the file, for errors: InvalidArgument with the parameter or constraint and what was expected.
absl::StatusOr<T1Space> ReadT1(const std::string& text, const std::string& where);

}  // namespace mycc
