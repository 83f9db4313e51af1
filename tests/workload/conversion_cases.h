// Conversions between all types, and the arithmetic of 8-bit floats: workloads, and inputs that hold every
// number of f8e4m3, f8e5m2, f16 and bf16, and of the wider types the edges: numbers of the narrow ones, every
// middle between two, what is beside both, and what lies beyond. Every implementation gives the reference's
// bits.
#pragma once

#include <string>
#include <vector>

#include "codegen/workload/reference.h"

namespace mycc {

struct ConversionCase {
  Workload canonical;
  std::vector<NDArray> inputs, expected;
};
std::vector<ConversionCase> ConversionCases();

// The steps that split every stage's last loop into runs of 16 and bind these to `inner`, the loops around
// them to `outer`; empty binds nothing.
std::string ConversionSteps(const Workload& canonical, const std::string& outer, const std::string& inner);

// The first element whose bits differ, NaNs apart; empty where there is none.
std::string DifferenceInBits(const std::vector<NDArray>& got, const std::vector<NDArray>& expected);

}  // namespace mycc
