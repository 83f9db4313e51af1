// Checks the rules of a workload as a whole; check.h has those of its stages. Thread rule: pure functions.
#pragma once

#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

// The error of a workload, or "": names must be distinct, shapes legal, every output written once, limits
// kept.
std::string WorkloadProblem(const Workload& workload);

}  // namespace mycc
