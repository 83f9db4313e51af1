// A machine whose figures are those that a device's worker measured, in place of the round ones of its
// family. For the search's predictions alone: default schedules and `mycc compile` never see them. The
// loads, broadcasts and stores of a cycle are left as they are: a loop that only reads L1 reaches less than a
// kernel that overlaps them. Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "codegen/target/target.h"
#include "proto/records.pb.h"
#include "tuner/space/machine.h"

namespace mycc {

// A measured figure replaces the family's where it is within a factor of kMostDeviation of it, and the rate
// of all threads that of one where it is at most kMostDeviation times what their number says. The others are
// left alone, and `ignored`, which may be null, gets a line for each. Missing constants change nothing.
inline constexpr double kMostDeviation = 8;
Machine MeasuredMachine(const Target& target, const v1::DeviceConstants& constants,
                        std::vector<std::string>* ignored = nullptr);

}  // namespace mycc
