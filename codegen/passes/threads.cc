#include "codegen/passes/threads.h"

#include <algorithm>

namespace mycc {

int64_t ThreadsUnder(const Stmt& stmt) {
  int64_t threads = 1;
  for (const Stmt& child : Children(stmt)) threads = std::max(threads, ThreadsUnder(child));
  return IsThreadLoop(stmt) ? threads * As<For>(stmt).var->extent : threads;
}

}  // namespace mycc
