// How far two workloads of one computation lie apart in their shapes. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

// All extents of a workload in the order of its text: two workloads of one shape-erased hash have as many.
std::vector<int64_t> ExtentsOf(const Workload& workload);

// The sum of the ratios' logarithms, without sign; nullopt for lists of different lengths, which are of
// different computations.
std::optional<double> ShapeDistance(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace mycc
