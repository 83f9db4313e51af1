// The numbering of a GPU block's threads by the thread loops of lowered code. Thread rule: pure
// functions.
#pragma once

#include <cstdint>

#include "codegen/ir/stmt.h"

namespace mycc {

// The most threads of any nest of thread loops under a statement; 1 where there is none. For a thread loop it
// is also the number of threads, and ThreadsUnder(loop.body) the distance from one iteration's threads to the
// next one's.
int64_t ThreadsUnder(const Stmt& stmt);

// Whether a role does nothing but wait, arrive and issue bulk copies into shared memory: one thread does it.
bool IsForOneThread(const Stmt& role);
// The threads of a role: whole warpgroups. Roles stand beside each other: their threads add up.
int64_t RoleThreads(const Stmt& role);

inline bool IsThreadLoop(const Stmt& stmt) {
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && loop->loop_kind == LoopKind::kThread;
}

}  // namespace mycc
