// The clock that stands while the loop does not turn.
#include "server/loop_clock.h"

#include <gtest/gtest.h>

#include "tests/server/fake_server.h"

namespace mycc {
namespace {

TEST(LoopClockTest, GoesWithTheLoopAndStandsWhileItIsDeaf) {
  FakeTime time;
  LoopClock clock(&time, 0.25);
  const double begun = clock.Seconds();
  for (int turn = 0; turn < 10; ++turn) {
    time.Advance(0.1);
    EXPECT_NEAR(clock.Seconds(), begun + 0.1 * turn, 1e-9) << "within a turn it stands";
    clock.Turn();
  }
  EXPECT_NEAR(clock.Seconds(), begun + 1, 1e-9);
  time.Advance(3600);
  clock.Turn();
  EXPECT_NEAR(clock.Seconds(), begun + 1.25, 1e-9) << "an hour without a turn is nobody's silence";
  EXPECT_EQ(clock.UnixMicros(), time.UnixMicros());
}

}  // namespace
}  // namespace mycc
