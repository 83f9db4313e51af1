// Turns the end of a child process into a measure status. Pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/measure.pb.h"
#include "proto/records.pb.h"

namespace mycc {

enum class Phase { kBuild, kRun };

// For a child that ended without an answer: its limits, its own crash, the system's lack of memory, or
// somebody else's kill, which is not the candidate's fault. A child that could not be made, or was
// refused threads, is the worker's failure. One that the system killed to get memory is the candidate's,
// which may have taken it.
struct Ending {
  v1::MeasureStatus status;
  std::string error;
};
Ending EndingOf(Phase phase, const v1::ForkReply& reply, double wall_limit_seconds);
// For a fork server that was lost itself: through the host's lack of memory (ResourceExhausted), which is the
// worker's failure, or through somebody else's kill.
Ending EndingOf(Phase phase, const absl::Status& lost);

}  // namespace mycc
