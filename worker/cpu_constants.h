// The micro-benchmarks of a CPU's constants (proto/device_constants.h): a clock, multiply-adds, reading from
// each cache level and from memory, latencies, and the start of a team of threads. Each is repeated for a few
// hundredths of a second, and the best run counts, since a neighbour only ever slows one down. Thread rule:
// in a runner's process (worker/runner.h), which has made no team yet; about a second in all.
#pragma once

#include <cstddef>

#include "proto/records.pb.h"

namespace mycc {

// `threads`: of the device's target. Left out is what this machine does not tell apart, such as a level whose
// size is unknown.
v1::DeviceConstants MeasureCpuConstants(int threads);

// The bytes that `threads` read together where they are to read memory: twice what their caches hold, which
// are l2_bytes for each and l3_bytes for each `threads_of_l3`. 0: more than a measurement may take.
size_t BytesPastCaches(size_t l2_bytes, size_t l3_bytes, int threads_of_l3, int threads);

}  // namespace mycc
