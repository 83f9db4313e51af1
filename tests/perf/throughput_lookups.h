// The look-ups of the benchmark of the service (throughput.sh) in a log, in this process; and the rate of the
// real search. Errors end the program with their words. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// Milliseconds of looking up the best record of each workload, in a log that is open.
double MillisecondsOfLookups(const std::string& log, const std::vector<std::string>& workloads);
// The same as `mycc compile` has it: it opens the log, reads the workloads' texts, and asks for the best
// record by each protocol in its order until there is one.
double MillisecondsOfCompileLookups(const std::string& log, const std::vector<std::string>& workloads);

// Candidates a second that evolutionary searches propose, each in a process of its own, as many at once as
// there are CPUs; `seconds`: how long they are asked.
double ProposalsPerSecond(double seconds);

}  // namespace mycc
