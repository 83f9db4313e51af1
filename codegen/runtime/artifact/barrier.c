// A barrier for steps of microseconds: threads spin, and then sleep, so that one without a core gets theirs.
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "codegen/runtime/artifact/parallel.h"

long syscall(long number, ...);

enum { kSpinsOfBarrier = 1000 };

void MyccAwaitAll(struct MyccBarrier* barrier, int64_t threads) {
  const uint32_t round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == threads) {
    __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
    // Sequentially consistent with the other side's count of those asleep: one of the two sees the other.
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&barrier->asleep, __ATOMIC_SEQ_CST) > 0)
      syscall(SYS_futex, &barrier->round, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
    return;
  }
  for (int spins = 0; spins < kSpinsOfBarrier; ++spins) {
    if (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) != round) return;
    __builtin_ia32_pause();
  }
  __atomic_fetch_add(&barrier->asleep, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&barrier->round, __ATOMIC_SEQ_CST) == round)
    syscall(SYS_futex, &barrier->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
  __atomic_fetch_sub(&barrier->asleep, 1, __ATOMIC_RELAXED);
}
