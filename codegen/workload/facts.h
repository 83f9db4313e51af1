// Derives ranges of index expressions from the conditions that hold for them. Thread rule: values.
#pragma once

#include <optional>
#include <vector>

#include "codegen/expr/affine.h"

namespace mycc {

// Linear forms that are all >= 0.
using Facts = std::vector<Linear>;
// Alternatives: one of them holds. Empty when none can.
using FactCases = std::vector<Facts>;

// The facts when `condition` is true (or, with `holds` false, is false), in addition to each of `known`.
FactCases Assume(const Expr& condition, bool holds, const FactCases& known);

// True when the facts are known to exclude one another.
bool IsContradictory(const Facts& facts);

// The closed range of an i64 index under facts; nullopt where there is no bound.
struct IndexRange {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;
};
IndexRange RangeUnder(const Linear& linear, const Facts& facts);

}  // namespace mycc
