#include "tests/e2e/log_of_others.h"

#include <chrono>
#include <thread>

#include "db/tuning_log.h"

namespace mycc {

int64_t TrialsInLog(const std::string& log, int state, const std::string& job) {
  const auto opened = TuningLog::Open(log, OpenMode::kRead);
  if (!opened.ok()) return 0;
  const auto count = (*opened)->database()->ReadInt(
      "SELECT count(*) FROM trials r JOIN tasks t ON t.id = r.task WHERE r.state = ?1 AND (t.job = ?2 OR ?2 "
      "= '')",
      {int64_t{state}, job});
  return count.value_or(0);
}

bool WaitForTrials(const std::string& log, int state, int64_t count, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (TrialsInLog(log, state) < count) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace mycc
