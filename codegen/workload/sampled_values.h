// Computes an output's reference values at random places, to verify kernels whose whole output is too
// expensive to compute. Pure except for the time limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/workload/compare.h"
#include "codegen/workload/reference.h"

namespace mycc {

struct SampledValues {
  DType dtype;
  std::vector<int64_t> places;  // distinct flat indices
  std::string values;           // in storage form, one for each place

  Expected expected() const;
};

// A share of a list of places: each `of`-th from number `index` on. Threads divide a list so.
struct PlaceShare {
  int64_t index = 0, of = 1;
};

// At most `count` distinct places among `elements`, from the two ends and at random in turn, so that every
// prefix of the list is well spread; or a share of that list.
std::vector<int64_t> PickPlaces(int64_t elements, int64_t count, uint64_t seed, PlaceShare share = {});

// At most `count` places of output number `output`: the two ends, where tails go wrong, and random ones. A
// place of a long chain of stages can be expensive, so `seconds` limits the time: places beyond it are left
// out, except the first.
SampledValues SampleOutput(const Workload& workload, SampledReference* reference, int output, int64_t count,
                           double seconds, uint64_t seed, PlaceShare share = {});

}  // namespace mycc
