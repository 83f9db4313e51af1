// A system that refuses threads is found before gRPC waits for them.
#include "mycc_tune/thread_probe.h"

#include <gtest/gtest.h>

#include <string>
#include <system_error>

namespace mycc {
namespace {

TEST(ThreadProbeTest, ThreadsThatAreGivenEnd) { EXPECT_TRUE(ProbeThreads().ok()); }

TEST(ThreadProbeTest, ARefusalSaysHowManyWereGiven) {
  int given = 0;
  const absl::Status status = ProbeThreads([&given](const std::function<void()>& work) {
    if (++given > 3) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::thread(work);
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(
      std::string(status.message()),
      "the system gives 3 threads; expected at least 16 (Resource temporarily unavailable; see ulimit -u)");
}

}  // namespace
}  // namespace mycc
