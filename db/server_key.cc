#include "db/server_key.h"

namespace mycc {

absl::StatusOr<std::string> ReadServerKey(const TuningLog& log) {
  const MutexLock lock(log.database()->mutex());
  return log.database()->ReadText("SELECT bytes FROM server_key WHERE id = 1");
}

}  // namespace mycc
