// Times two functions of compiled libraries in turn, at several placements in memory
// (codegen/runtime/placement.h). At each one both libraries are loaded anew, at other addresses; both
// functions' tensors begin at the same new offsets; and the one that is loaded first and begins changes. A
// GPU's libraries stay loaded; its tensors are allocated anew. Thread rule: one owner, which times one pair
// at a time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/reference.h"
#include "mycc/commands.h"
#include "mycc/samples.h"

namespace mycc {

struct PlacedFunction {
  std::string library;  // the file
  std::string function;
};

// Seconds, and the second's over the first's: each a mean over the placements' medians, with an interval that
// holds what other placements would add. `samples` is the number of placements.
struct PlacedTimes {
  MedianInterval first, second, ratio;
  size_t turns = 0;  // at all placements
};

// `options` says which device, how long and how often. REQUIRES: both files are closed, unless they are for a
// GPU; both functions have been called once, on the same inputs, without an error.
absl::StatusOr<PlacedTimes> TimeAtPlacements(const PlacedFunction& first, const PlacedFunction& second,
                                             const std::vector<NDArray>& inputs, const BenchOptions& options);

}  // namespace mycc
