// Where the threads of a block must wait for each other: before a statement that touches what statements
// before it, since the last such point, have left to other threads. Thread rule: pure functions.
#pragma once

#include <unordered_set>

#include "codegen/ir/stmt.h"
#include "codegen/passes/passes.h"

namespace mycc {

// The statements of a launch that __syncthreads() stands before. Only statements outside of thread loops:
// what is inside is one thread's own business.
std::unordered_set<const StmtNode*> MeetingPoints(const Stmt& launch, const SharedPlan& shared);

}  // namespace mycc
