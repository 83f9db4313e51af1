// A secret of 32 random bytes that is made with the log: a server that is started again with it knows its own
// marks. Thread rule: thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

absl::StatusOr<std::string> ReadServerKey(const TuningLog& log);

}  // namespace mycc
