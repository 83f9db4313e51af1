// Counts what the launches of a GPU kernel move, multiply and wait for, by the analytic model, and names
// which of these limits each. The counts are of the schedule, so that no GPU is needed. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// "counts 1", "6.4 us: DRAM 25.7 MB in 6.2 us, L2 .., shared memory .., arithmetic .., issue ..; 1.5 waves of
// 264 blocks; memory accesses use 25 % of the bytes that they move; limited by DRAM" for each launch in
// order; on tensor cores the products, and their operands' way to shared memory, instead of L2 and what
// follows. The times are those of each resource alone; a launch is limited by latency where none of them
// takes half of its time. REQUIRES: a GPU.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LaunchCountsOf(const Workload& workload,
                                                                                const Target& target,
                                                                                const Trace& trace);

}  // namespace mycc
