// The numbering of a GPU block's threads by the thread loops of lowered code. Thread rule: pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

inline constexpr int64_t kThreadsOfWarp = 32, kThreadsOfWarpgroup = 128;

// The grid loops of a launch's body, outermost first; `inside` is the code in them.
inline std::vector<const For*> GridLoopsOf(const Stmt& body, Stmt* inside) {
  return LoopsOfNest(body, inside, LoopKind::kGrid);
}

// The number of threads of the largest nest of thread loops under a statement; 1 where there is none. For a
// thread loop, ThreadsUnder(loop.body) is also the distance between the threads of consecutive iterations.
int64_t ThreadsUnder(const Stmt& stmt);

// Whether one thread executes the role: it only waits, arrives, counts in registers, and issues bulk copies
// into shared memory.
bool IsForOneThread(const Stmt& role);
// The number of threads of a role: whole warpgroups. Roles run concurrently, so that a block has the sum of
// their threads.
int64_t RoleThreads(const Stmt& role);

// The number of warpgroups that execute a product together, the largest under a statement; 0 where there is
// no product by warpgroups (wgmma).
int WarpgroupsUnder(const Stmt& stmt);

inline bool IsLoopOfKind(const Stmt& stmt, LoopKind kind) {
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && loop->loop_kind == kind;
}
inline bool IsThreadLoop(const Stmt& stmt) { return IsLoopOfKind(stmt, LoopKind::kThread); }
inline bool IsGridLoop(const Stmt& stmt) { return IsLoopOfKind(stmt, LoopKind::kGrid); }

}  // namespace mycc
