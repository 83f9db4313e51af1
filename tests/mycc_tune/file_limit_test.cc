// A server that a shell started has files for a thousand workers.
#include "mycc_tune/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "gtest/gtest.h"

namespace mycc {
namespace {

rlimit FileLimit() {
  rlimit limit = {};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

TEST(FileLimitTest, ASoftLimitIsRaisedAndNeverLowered) {
  const rlimit before = FileLimit();
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(256, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseFileLimit();
  EXPECT_EQ(FileLimit().rlim_cur, std::min<rlim_t>(before.rlim_max, 65536));
  EXPECT_EQ(FileLimit().rlim_max, before.rlim_max);
  if (before.rlim_max <= 65536) return;
  low.rlim_cur = before.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseFileLimit();
  EXPECT_EQ(FileLimit().rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace mycc
