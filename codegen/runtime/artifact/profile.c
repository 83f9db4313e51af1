// The times of a model's launches, in a library that was compiled for that.
#include <time.h>

#include "codegen/runtime/artifact/artifact.h"

void MyccMark(int64_t* mark) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  __atomic_store_n(mark, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, __ATOMIC_RELAXED);
}

int32_t MyccProfile(const int64_t* marks, int64_t launches, double* seconds, int32_t count) {
  for (int64_t i = 0; i < launches && i < count; ++i) {
    const int64_t begin = __atomic_load_n(&marks[i], __ATOMIC_RELAXED);
    const int64_t end = __atomic_load_n(&marks[i + 1], __ATOMIC_RELAXED);
    seconds[i] = 1e-9 * (double)(end - begin);
  }
  return (int32_t)launches;
}
