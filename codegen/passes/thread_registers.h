// Maps buffers in scopes local and accumulator, between a GPU's block loops and thread loops, to the threads
// whose registers hold their elements.
//
// The thread that accesses an element follows from the index: in acc[i*4 + j] under thread loop i, thread i
// has elements i*4 to i*4 + 3. All accesses must agree on it. A buffer whose index mentions no thread loop
// exists in every thread as its own copy. Thread rule: pure functions; values.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// A part of the thread's number as it stands in an index: index = coefficient * (thread / stride % extent) +
// ...
struct ThreadDigit {
  int64_t coefficient, stride, extent;
  bool operator==(const ThreadDigit&) const = default;
};

struct Distribution {
  std::vector<std::vector<ThreadDigit>> digits;  // of each dimension, largest coefficient first
  std::vector<int64_t> shape;                    // of each thread's own array
};
using Distributions = std::unordered_map<const BufferNode*, Distribution>;

// The place in its own array of the element that the thread accesses by `indices`.
std::vector<Expr> OwnIndices(const Distribution& distribution, const std::vector<Expr>& indices,
                             const std::unordered_map<const VarNode*, ThreadDigit>& threads);

// FailedPrecondition naming buffer and loops where threads disagree. `launch` is the code under the block
// loops; `threads` are those of the block.
absl::StatusOr<Distributions> DistributeRegisters(const Stmt& launch, int64_t threads);

}  // namespace mycc
