// Derives ranges of index expressions from the conditions that hold for them. Thread rule: values.
#pragma once

#include <optional>
#include <vector>

#include "codegen/expr/affine.h"

namespace mycc {

// Linear forms, each of them >= 0.
using Facts = std::vector<Linear>;
// Alternatives: at least one of them holds. Empty for a contradiction.
using FactCases = std::vector<Facts>;

// Each case of `known` with the facts of `condition` added: that it is true, or with `holds` == false that it
// is false.
FactCases Assume(const Expr& condition, bool holds, const FactCases& known);

// True when the facts provably contradict one another.
bool IsContradictory(const Facts& facts);

// The closed range of an i64 index under facts; nullopt where there is no bound.
struct IndexRange {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;
};
IndexRange RangeUnder(const Linear& linear, const Facts& facts);

}  // namespace mycc
