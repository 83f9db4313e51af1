// Chains of stages along one axis (codegen/workload/stream_chain.h), as rules ask for them. Pure.
#pragma once

#include "codegen/workload/stream_chain.h"
#include "tuner/space/anatomy.h"

namespace mycc {

// The most rows of a tile on a CPU that are few (rules/streamed_dot.cc): keys and values are then used as
// they lie, rather than packed or turned over for products of many rows.
inline constexpr int64_t kFewRows = 16;

// The chain that ends in stage `sum`; nullopt when there is none.
inline std::optional<StreamChain> FindStreamChain(const Anatomy& anatomy, int sum) {
  return FindStreamChain(anatomy.workload(), anatomy.links(), sum);
}

}  // namespace mycc
