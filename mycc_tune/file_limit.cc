#include "mycc_tune/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace mycc {
namespace {

constexpr rlim_t kWanted = 65536;  // as deploy/systemd has it

}  // namespace

void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  setrlimit(RLIMIT_NOFILE, &limit);  // up to the hard limit it is everybody's right
}

}  // namespace mycc
