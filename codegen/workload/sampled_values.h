// Computes the language's values of an output at randomly drawn places, to judge kernels whose whole output
// is too expensive to compute otherwise. Pure but for the time limit.
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

// At most `count` distinct places among `elements`: the ends and random ones in turn, so that any first part
// of them is spread well.
std::vector<int64_t> PickPlaces(int64_t elements, int64_t count, uint64_t seed);

// At most `count` places of output number `output`: the two ends, where tails go wrong, and random ones.
// `seconds` limit the work, since a place of a long chain of stages can cost much: the places that they do
// not suffice for are left out, but never all.
SampledValues SampleOutput(const Workload& workload, SampledReference* reference, int output, int64_t count,
                           double seconds, uint64_t seed);

}  // namespace mycc
