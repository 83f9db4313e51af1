// `mycc-tune log devices`, without its command line: the constants of devices that a log keeps.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "mycc_tune/default_log.h"

namespace mycc {

struct LogDevicesArgs {
  std::string log = kDefaultLog;
  bool json = false;
  bool forget = false;  // them, in place of showing them
};
// Each constant with its unit, and the measured figures that predictions do not use, with the reason.
// NotFound when the log has none.
absl::Status LogDevicesCommand(const LogDevicesArgs& args, std::ostream& out);

}  // namespace mycc
