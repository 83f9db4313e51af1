// The scripted search of the benchmark of the service (throughput.sh). It replaces the real search through
// the seam StartSearch (server/executors.h), so the benchmark times the service alone. Its space is
// synthetic: each candidate is a trace of usual length that differs from all others, at the cost of printing
// it. Thread rule: as JobSearch.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/tuning.pb.h"
#include "server/job_search.h"

namespace mycc {

// The target of all tasks and of all simulated devices.
inline constexpr char kBenchTarget[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";

// The text of workload number `shape`; different ones differ in their shapes.
std::string BenchWorkload(int shape);
// A job of `tasks` workloads from number `first_shape` on, with this number of trials for each.
v1::JobSpec BenchJob(int first_shape, int tasks, uint32_t trials);

// See StartSearch. The tasks take turns, and each proposal is a whole generation.
absl::StatusOr<std::unique_ptr<JobSearch>> StartScriptedSearch(const SearchStart& start);

}  // namespace mycc
