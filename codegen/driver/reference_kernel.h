// The reference kernel that candidates are compared with: the same computation with wider accumulators, in a
// fixed simple schedule. Pure.
#pragma once

#include "codegen/ir/function.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Sums and products of narrower floats accumulate in f64, their factors widened first; a further stage rounds
// to the declared type.
Workload WidenReductions(const Workload& canonical);

// For CPUs: the naive nest with one loop of each block parallel and one vectorized, so that the reference of
// a large workload takes seconds and not minutes. It depends on the workload alone. For GPUs the naive nest
// is enough (passes/bind_nests.cc).
Function ReferenceFunction(const Workload& canonical);

}  // namespace mycc
