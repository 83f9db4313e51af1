// A barrier for steps of microseconds: threads spin, and yield their core to one that has none.
#include <sys/syscall.h>

#include "codegen/runtime/artifact/parallel.h"

long syscall(long number, ...);

enum { kSpinsOfBarrier = 200 };

void MyccAwaitAll(struct MyccBarrier* barrier, int64_t threads) {
  const int64_t round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == threads) {
    __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int spins = 0; __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round; ++spins) {
    if (spins < kSpinsOfBarrier) {
      __builtin_ia32_pause();
    } else {
      syscall(SYS_sched_yield);
    }
  }
}
