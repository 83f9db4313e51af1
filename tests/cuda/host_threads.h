// The threads of a block on the CPU, for emitted kernels: coroutines that take turns in a random order, so
// that what no barrier orders is found to be wrong now and then.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/cuda/host_api.h"

namespace mycc {

HostThreads TheHostThreads();

// Runs `kernel` once for each thread of each block, clusters of `cluster` blocks in a random order, those of
// a cluster side by side. `poison` is called before each cluster. False when some threads wait for ever.
bool RunOnHostThreads(int blocks, int cluster, int threads, uint64_t seed,
                      const std::function<void()>& poison, const std::function<void()>& kernel);

}  // namespace mycc
