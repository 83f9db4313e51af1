// `mycc-tune log diff A B`: prints what changed between two logs.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace mycc {

struct LogDiffArgs {
  std::string first, second;  // logs
  bool json = false;          // JSON lines, and a last one with the counts
};
// OK whether the logs differ or not, since nothing has failed; DataLoss at the end when a damaged record was
// left out.
absl::Status LogDiffCommand(const LogDiffArgs& args, std::ostream& out);

}  // namespace mycc
