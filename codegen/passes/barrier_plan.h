// Plans the barriers of a thread block. A barrier precedes each statement that accesses data which other
// threads have written, or writes data which they have read, since the last barrier. Thread rule: pure
// functions.
#pragma once

#include <functional>
#include <unordered_set>

#include "codegen/ir/stmt.h"

namespace mycc {

// The targets of a statement that contains only stores, under conditions.
enum class StoreTargets { kRegisters, kMemory, kBoth, kOther /* other statements too */ };
StoreTargets TargetsOf(const Stmt& stmt, const std::function<bool(const BufferNode&)>& in_registers);

// The statements of a thread block's code that need a barrier before them. All are outside of thread loops:
// the code inside is that of one thread. REQUIRES: buffers in shared memory have offsets.
std::unordered_set<const StmtNode*> PlanBarriers(const Stmt& block);

}  // namespace mycc
