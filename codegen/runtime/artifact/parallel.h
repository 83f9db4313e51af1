// Runs a library kernel's work in the team of threads that a model's other kernels share.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Thread number `thread` of `threads`.
typedef void MyccWork(void* data, int64_t thread, int64_t threads);

// Calls `work` once in each thread of the team, at the same time, and returns after all of them. In an
// artifact the team is OpenMP's (team.c); inside mycc it is the caller alone (one_thread.c).
void MyccInParallel(MyccWork* work, void* data);

// A point at which some threads of a team wait for each other. All zero at first.
struct MyccBarrier {
  int64_t arrived __attribute__((aligned(64)));
  uint32_t round __attribute__((aligned(64)));
  uint32_t asleep;
};
// Returns when all `threads` have called it. All of them see then whatever one has written before its call.
void MyccAwaitAll(struct MyccBarrier* barrier, int64_t threads);

#ifdef __cplusplus
}
#endif
