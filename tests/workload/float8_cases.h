// Conversions of 8-bit floats, all there are: workloads, and inputs that hold every number of f8e4m3, f8e5m2,
// f16 and bf16, and of f32 and f64 every 8-bit number, every middle between two, what is beside both, and
// what lies beyond. Every implementation gives the reference's bits.
#pragma once

#include <string>
#include <vector>

#include "codegen/workload/reference.h"

namespace mycc {

struct Float8Case {
  Workload canonical;
  std::vector<NDArray> inputs, expected;
};
std::vector<Float8Case> Float8Cases();

// The steps that split every stage's last loop into runs of 16 and bind these to `inner`, the loops around
// them to `outer`; empty binds nothing.
std::string Float8Steps(const Workload& canonical, const std::string& outer, const std::string& inner);

// The first element whose bits differ, NaNs apart; empty where there is none.
std::string DifferenceInBits(const std::vector<NDArray>& got, const std::vector<NDArray>& expected);

}  // namespace mycc
