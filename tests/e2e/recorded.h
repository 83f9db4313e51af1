// The program mycc-tune-recorded: mycc-tune whose CPU runners give recorded times. Everything else is real:
// server, search, worker, builder and runner are the same code in the same processes, and candidates are
// built, run and verified. The time of a candidate is a function of its code, so that a job's results are the
// same in every run. The seam is RunnerHandler in worker/child_main.h. Thread rule: re-entrant.
#pragma once

#include <string>

namespace mycc {

// The environment variable with the file that gets a line for each run that runners begin. It is opened
// before they are confined.
inline constexpr char kRecordedRuns[] = "MYCC_RECORDED_RUNS";
// "DIGEST UNIX_MICROS", or "round UNIX_MICROS" for a final round.
inline constexpr char kRoundRun[] = "round";

// The recorded time of the code with this digest: between one and ten milliseconds.
double RecordedSeconds(const std::string& code_digest);

}  // namespace mycc
