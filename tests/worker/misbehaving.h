// A builder for tests of a GPU's measurer: candidates of one workload that behave as their trace says, in
// CUDA C++ written by hand. Thread rule: re-entrant.
#pragma once

#include "proto/measure.pb.h"

namespace mycc {

// y = x * 2.
inline constexpr char kDoubling[] = R"(workload doubling(x: f32[64,1000]) -> (y: f32[64,1000]) {
  y[i,j] = x[i,j] * 2.0
})";

// Answers like HandleBuildRequest, but a trace of one word ("good", "wrong", "forgetful", "beside", "input",
// "fault", "hang", "finite", "flaky" from its third launch, "restless", and for a driver without a device
// "crash", "killed", "gone", "shy") is a kernel of that name. The process that is to build a reference is
// killed where kUnluckyBuild names a file that is not there yet, which it makes.
inline constexpr char kUnluckyBuild[] = "MYCC_TEST_UNLUCKY_BUILD";  // in the environment
v1::BuildResponse BuildMisbehaving(const v1::BuildRequest& request);

}  // namespace mycc
