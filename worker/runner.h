// The process that prepares a test case, verifies and times one candidate, or measures the device's
// constants, on a CPU. It runs under a fork server (process/fork_server.h), so that a candidate's damage
// affects this process alone. Thread rule: one request for each process.
#pragma once

#include "proto/measure.pb.h"

namespace mycc {

v1::RunnerResponse HandleRunnerRequest(const v1::RunnerRequest& request);

}  // namespace mycc
