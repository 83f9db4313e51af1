// `mycc-tune reverify` and `upgrade-check --reverify`: measures given schedules again, through a server or on
// this host, while other work goes first if so asked.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mycc_tune/default_log.h"
#include "mycc_tune/upgrade_check.h"
#include "proto/channel.h"
#include "proto/records.pb.h"

namespace mycc {

// The place where schedules are measured again, and what is printed.
struct MeasuringOptions {
  std::optional<ServerAddress> server;  // none: this host, into `log`
  std::string log = kDefaultLog;
  bool only_when_idle = false;  // on devices that have nothing else to do
  bool detach = false;          // from the server, which goes on without this command
  bool json = false;
  bool quiet = false;
};

struct ReverifyOptions {
  MeasuringOptions measuring;
  // The records of the log whose code this build changes, in place of the foreign ones that wait.
  bool stale = false;
  std::vector<std::string> workloads;  // by name; empty: all
  std::string target;                  // empty: what the devices can measure
  std::string cache;                   // "warm", "cold" or "model"; empty: all of them
  uint32_t top = 8;                    // of each workload
};
// OK when all was measured, whatever came out, and when nothing waits.
absl::Status ReverifyCommand(const ReverifyOptions& options, std::ostream& out);

// With `reverify`, the changed records are then measured again.
absl::Status UpgradeCheckCommand(const UpgradeCheckArgs& args, bool reverify,
                                 const MeasuringOptions& measuring, std::ostream& out);

}  // namespace mycc
