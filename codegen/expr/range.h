// Bounds of index expressions: interval arithmetic over their linear forms, narrowed by facts that hold for
// their variables. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/expr/affine.h"

namespace mycc {

// RangeOf for a linear form.
std::optional<Interval> RangeOfLinear(const Linear& linear);

// Linear forms, each of them >= 0.
using Facts = std::vector<Linear>;

// Bounds beyond it count as unbounded, so that products of bounds do not overflow.
inline constexpr int64_t kMaxBound = int64_t{1} << 60;

// The closed range of an i64 expression under facts; nullopt where there is no bound.
struct IndexRange {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;
};
// How sums and multiples behave. kExact: in an index that was checked, nothing overflows. kWraps: values from
// memory may, so that a bound on one side of them says nothing of a sum; of 32 bits they count as unbounded.
enum class Arithmetic { kExact, kWraps };
// `effort`: the most facts whose multiples are added up for a bound. With less, bounds get weaker, never
// wrong.
IndexRange RangeUnder(const Linear& linear, const Facts& facts, Arithmetic arithmetic, int effort);

// True when facts about checked indices provably contradict one another.
bool IsContradictory(const Facts& facts);

}  // namespace mycc
