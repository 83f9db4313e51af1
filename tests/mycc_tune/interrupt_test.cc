// SIGINT and SIGTERM end a command, or wait for its watch: each case in a process of its own.
#include "mycc_tune/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "command/misuse.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ExitedWithCode;

[[noreturn]] void WaitForTheEnd() {
  for (;;) pause();
}

TEST(InterruptTest, ACommandWithNothingToFinishEndsAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto interrupted = [signal] {
      EndOnInterrupts();
      raise(signal);
      WaitForTheEnd();
    };
    EXPECT_EXIT(interrupted(), ExitedWithCode(kInterruptedExitStatus), "^mycc-tune: interrupted\n$")
        << signal;
  }
}

TEST(InterruptTest, AWatchHearsOfEachInstead) {
  const auto watched = [] {
    EndOnInterrupts();
    BlockInterrupts();
    const InterruptWatch watch([](int nth) { nth == 2 ? _exit(7) : void(kill(getpid(), SIGTERM)); });
    kill(getpid(), SIGINT);
    WaitForTheEnd();
  };
  EXPECT_EXIT(watched(), ExitedWithCode(7), "^$");
}

TEST(InterruptTest, AnIgnoredSignalStaysIgnored) {
  const auto ignoring = [] {
    std::signal(SIGINT, SIG_IGN);
    EndOnInterrupts();
    raise(SIGINT);
    _exit(5);
  };
  EXPECT_EXIT(ignoring(), ExitedWithCode(5), "^$") << "as a shell starts a command in the background";
}

}  // namespace
}  // namespace mycc
