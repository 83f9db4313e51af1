// Converts a CPU target's features between a set and the shortest text. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/cpus.h"
#include "codegen/target/target.h"

namespace mycc {

// `mcpu` with `features` ("+avxvnni", "-avx512f") added and taken away. InvalidArgument for an unknown name,
// and for a feature with both signs.
absl::StatusOr<CpuFeatureSet> ResolveFeatures(const std::string& mcpu,
                                              const std::vector<std::string>& features);

// Each feature in which the set differs from what `mcpu` implies, sorted by name. REQUIRES: a known mcpu.
std::vector<std::string> DifferenceFrom(const std::string& mcpu, CpuFeatureSet set);

}  // namespace mycc
