// Checks the rules of a workload as a whole; check.h has those of its stages. Thread rule: pure functions.
#pragma once

#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

// "" when arguments, outputs and stages fit together: distinct names, legal shapes, every output written
// once, limits kept.
std::string WorkloadProblem(const Workload& workload);

}  // namespace mycc
