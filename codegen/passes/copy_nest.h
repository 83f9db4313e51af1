// The parts of a copy by threads, for the pass divide_copies and for back ends. Thread rule: pure functions;
// values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/ir/pipeline_stmts.h"

namespace mycc {

// The registers of a thread for what neighbouring copies load before the first of them stores. Their loads
// take the time of one access to memory.
inline constexpr int64_t kRegistersOfCopies = 64;

struct ThreadCopyNest {
  std::vector<const For*> loops;  // in the order in which their elements are dealt to the threads
  const Store* store;
  Expr load, condition;  // condition: null for none
  int64_t elements = 1;
  int64_t chunk = 0;  // the copy's

  int64_t chunks() const { return elements / chunk; }
  // The registers of a thread that holds one chunk.
  int64_t registers() const { return std::max<int64_t>(chunk * DTypeBytes(load->dtype) / 4, 1); }
};
// Nullopt when the copy is more than a nest of loops around a store. Points into the copy.
std::optional<ThreadCopyNest> ThreadCopyNestOf(const Copy& copy);

}  // namespace mycc
