// The threads that execute each statement of a launch, and their registers. Buffers of scopes local and
// accumulator, allocated between a GPU's grid loops and thread loops, are distributed over the registers.
//
// The index determines the thread that holds an element: in acc[i*4 + j] under thread loop i, thread i holds
// elements i*4 to i*4 + 3. All accesses must agree. A buffer whose index uses no thread loop has a copy in
// every thread. Thread rule: pure functions; values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// A part of the thread's number in an index: index = coefficient * (thread / stride % extent) + ...
struct ThreadDigit {
  int64_t coefficient, stride, extent;
  bool operator==(const ThreadDigit&) const = default;
};

// Thread loops, each a digit of the thread's number with coefficient 1.
using ThreadLoops = std::unordered_map<const VarNode*, ThreadDigit>;

struct ExecutingThreads {
  int64_t team = 1;  // that execute the code together: the block's, the reducing cluster's or the role's
  int64_t replication = 1;  // consecutive ones that execute this statement redundantly
  int64_t nest = 0;         // of the enclosing nest of thread loops; 0: none
  bool in_role = false;
  ThreadLoops loops;
  // Tensors in registers, with the thread loops around their Allocs.
  std::unordered_map<const BufferNode*, VarSet> registers;
};

// Top-down: where `rewrite` returns a statement, it replaces the statement with all inside; null goes on to
// the children. Not called for grid loops.
using ThreadRewrite = std::function<Stmt(const Stmt& stmt, const ExecutingThreads& threads)>;
std::shared_ptr<const Launch> RewriteInThreads(const Launch& launch, const ThreadRewrite& rewrite);

struct Distribution {
  std::vector<std::vector<ThreadDigit>> digits;  // for each dimension, largest coefficient first
  std::vector<int64_t> shape;                    // the shape of each thread's own array
};
using Distributions = std::unordered_map<const BufferNode*, Distribution>;

// The indices, in the thread's own array, of the element at `indices`.
std::vector<Expr> OwnIndices(const Distribution& distribution, const std::vector<Expr>& indices,
                             const ThreadLoops& threads);

// FailedPrecondition, naming buffer and loops, when accesses disagree. `launch` is the code inside the grid
// loops; `threads` is the number of threads of a block.
absl::StatusOr<Distributions> DistributeRegisters(const Stmt& launch, int64_t threads);

}  // namespace mycc
