// The functions that expressions of tuning spaces may call. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "laboratory/expression.h"

namespace mycc {

// The function of a name, "math.ceil". InvalidArgument, with the known ones, for another name, and for a
// number of arguments that it does not take; -1: any.
absl::StatusOr<PythonFunction> FindPythonFunction(const std::string& name, int arguments = -1);

}  // namespace mycc
