// The work of the runner's processes: prepare a test case, or verify and time one candidate. Runs in a
// nursery (worker/nursery.h): whatever the candidate does happens to this process alone. Thread rule: one
// request a process.
#pragma once

#include "proto/measure.pb.h"

namespace mycc {

v1::RunnerResponse HandleRunnerRequest(const v1::RunnerRequest& request);

}  // namespace mycc
