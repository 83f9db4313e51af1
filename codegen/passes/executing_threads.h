// The threads that execute each statement of a launch, for passes that rewrite a thread block's code. Thread
// rule: pure functions; values.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "codegen/ir/stmt.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {

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

}  // namespace mycc
