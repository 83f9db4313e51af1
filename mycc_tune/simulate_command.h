// `mycc-tune simulate`: replays recorded spaces through search strategies. Thread rule: re-entrant.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "laboratory/simulation.h"
#include "mycc_tune/simulation_view.h"

namespace mycc {

struct SimulateOptions {
  // T4 files, Kernel Tuner's cache files, or tuning logs where a workload is named. None: `space` is counted.
  std::vector<std::string> results;
  std::string space;              // a T1 file; empty: the space is what the results hold
  std::string workload;           // a hash or a name; empty: the results are no tuning logs
  std::string target, cache;      // of a tuning log's trials; empty: the only ones
  std::vector<std::string> warm;  // results of other devices, for warm starts
  bool leave_one_out = false;     // each space is warm started from the others of its name
  SimulationConfig config;        // its strategies may be "all"
  std::string plot;               // a file (base/output_file.h); empty: none
  bool json = false;
};
// `view` shows how far it is, until there is a result; null: nothing does.
absl::Status SimulateCommand(const SimulateOptions& options, std::ostream& out,
                             SimulationView* view = nullptr);

}  // namespace mycc
