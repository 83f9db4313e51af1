// Looks into a log while programs of a test are writing it.
#pragma once

#include <cstdint>
#include <string>

namespace mycc {

// Trials of the job, or of all jobs where it is empty, in a state as the log has it. 0 while there is no log.
int64_t TrialsInLog(const std::string& log, int state, const std::string& job = "");
inline constexpr int kQueuedInLog = 1, kLeasedInLog = 2, kFinishedInLog = 3;

// Waits until there are `count` trials in the state; false after `seconds`.
bool WaitForTrials(const std::string& log, int state, int64_t count, double seconds);

}  // namespace mycc
