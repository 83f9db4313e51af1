// Compares a model that was compiled in mixed precision with the same model in f32, on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "mycc/kernels.h"

namespace mycc {

// How far an output is from that of the f32 model.
struct Deviation {
  std::string output;
  double largest_magnitude = 0;  // of the f32 model's finite elements
  double max_abs_error = 0;      // of elements that are finite in both
  int64_t not_finite = 0;        // elements that are finite in one of the two alone, or another infinity
  double max_rel_error() const {
    return largest_magnitude > 0 ? max_abs_error / largest_magnitude : max_abs_error;
  }
};

// Compares a tensor with that of the f32 model. REQUIRES: they have the same type and shape.
Deviation DeviationOf(const std::string& output, const HostTensor& tensor, const HostTensor& expected);

// Calls `library`, which was compiled from `source` for `target`, and a library of the f32 model with default
// schedules, which is made for it. `inputs` are NAME=FILE.npy; others are random. FailedPrecondition where
// this machine cannot run the target's code.
absl::StatusOr<std::vector<Deviation>> CompareWithF32(const std::string& library, const KernelSource& source,
                                                      const Target& target,
                                                      const std::vector<std::string>& inputs);

// Whether CompareWithF32 will have what it needs, before anything is written: Misuse for an input that the
// model has not.
absl::Status CanCompare(const Kernels& kernels, const std::vector<std::string>& inputs);

std::string DeviationTable(const std::vector<Deviation>& deviations);

}  // namespace mycc
