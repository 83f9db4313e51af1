// Classes of devices: each has a cost model of its own in the log, because what slows a schedule down on one
// does not on another. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/target/target.h"

namespace mycc {

// "cost-sm_90a"; for a CPU by its widest instructions, "cost-amx", "cost-avx512", "cost-avx2" or "cost-sse".
// A server's CPU, with a large cache of its own for each core, has "-server" behind AVX-512.
std::string ModelKind(const Target& target);

// The kinds that a target of `kind` may start from, the nearest first, `kind` itself before all; among them
// the names of older builds, which had one model for all CPUs and one for all GPUs. Models of CPUs say
// nothing of GPUs.
std::vector<std::string> NearestKinds(const std::string& kind, const std::vector<std::string>& known);

bool IsGpuKind(const std::string& kind);

// The entry of the nearest of the kinds; null where none of them is near.
template <typename Value>
const Value* OfNearestKind(const std::map<std::string, Value>& by_kind, const std::string& kind) {
  std::vector<std::string> known;
  for (const auto& [other, value] : by_kind) known.push_back(other);
  const std::vector<std::string> nearest = NearestKinds(kind, known);
  return nearest.empty() ? nullptr : &by_kind.at(nearest.front());
}

}  // namespace mycc
