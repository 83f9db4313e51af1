// A secret of 32 random bytes in the log, with which the server signs lease tickets. It lets a restarted
// server recognize its own tickets. Thread rule: thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

absl::StatusOr<std::string> ReadServerKey(const TuningLog& log);

}  // namespace mycc
