// Timing in turn under a simulated clock with drift and noise.
#include "worker/turns.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// A device whose kernels take what `seconds` says for each, times how slow the device is by then.
class FakeDevice {
 public:
  FakeDevice(std::vector<double> seconds, std::function<double(double)> slowness)
      : seconds_(std::move(seconds)), slowness_(std::move(slowness)), calls_(seconds_.size()) {}

  TimedCall CallOf(size_t kernel, const TimingPlan& plan) {
    TimedCall timed{[this, kernel] {
      order_.push_back(kernel);
      ++calls_[kernel];
      now_ += seconds_[kernel] * slowness_(now_);
    }};
    if (plan.protocol == v1::TIMING_PROTOCOL_COLD) timed.before = [this] { ++flushes_; };
    return timed;
  }
  std::vector<v1::Timing> TimeInTurn(const TimingPlan& plan) {
    std::vector<TimedCall> calls;
    for (size_t i = 0; i < seconds_.size(); ++i) calls.push_back(CallOf(i, plan));
    return TimeCallsInTurn(plan, calls, [this] { return now_; });
  }
  v1::Timing TimeAlone(size_t kernel, const TimingPlan& plan) {
    return TimeCalls(plan, CallOf(kernel, plan), [this] { return now_; });
  }

  const std::vector<size_t>& order() const { return order_; }
  int calls(size_t kernel) const { return calls_[kernel]; }
  int flushes() const { return flushes_; }
  double now() const { return now_; }

 private:
  const std::vector<double> seconds_;
  const std::function<double(double)> slowness_;
  std::vector<int> calls_;
  std::vector<size_t> order_;
  double now_ = 0;
  int flushes_ = 0;
};

double Steady(double) { return 1; }
TimingPlan Budget(double seconds) { return {.budget_seconds = seconds}; }

TEST(TimeCallsInTurnTest, DriftCancels) {
  // Half as fast again within a second of work; the second kernel is the better one by two percent.
  const auto heats_up = [](double now) { return 1 + 0.5 * std::min(now, 1.0); };
  FakeDevice alone({1.02e-3, 1.00e-3}, heats_up);
  const double first = alone.TimeAlone(0, Budget(0.1)).seconds();
  for (int other = 0; other < 4; ++other) alone.TimeAlone(1, Budget(0.1));
  EXPECT_LT(first, alone.TimeAlone(1, Budget(0.1)).seconds()) << "one after the other, the drift decides";

  FakeDevice in_turn({1.02e-3, 1.00e-3}, heats_up);
  const std::vector<v1::Timing> timings = in_turn.TimeInTurn(Budget(2));
  ASSERT_THAT(timings, SizeIs(2));
  EXPECT_NEAR(timings[0].seconds() / timings[1].seconds(), 1.02, 1e-5);
}

TEST(TimeCallsInTurnTest, NoiseOfMomentsCancels) {
  std::mt19937 random(5);
  std::lognormal_distribution<double> noise(0, 0.3);
  double until = 0, slow = 1;
  // A neighbour that comes and goes every 20 ms.
  const auto neighbour = [&](double now) {
    if (now >= until) until = now + 0.02, slow = noise(random);
    return slow;
  };
  FakeDevice device({1.00e-4, 1.01e-4, 1.02e-4, 1.03e-4}, neighbour);
  const std::vector<v1::Timing> timings = device.TimeInTurn(Budget(1));
  for (size_t i = 1; i < timings.size(); ++i) {
    EXPECT_NEAR(timings[i].seconds() / timings[0].seconds(), 1 + 0.01 * static_cast<double>(i), 0.004);
    EXPECT_LT(timings[i - 1].seconds(), timings[i].seconds());
  }
}

TEST(TimeCallsInTurnTest, SteadyKernelsNeedFewTurns) {
  FakeDevice device({1e-3, 2e-3}, Steady);
  const std::vector<v1::Timing> timings = device.TimeInTurn(Budget(10));
  EXPECT_EQ(timings[0].samples_seconds_size(), 12);
  EXPECT_EQ(timings[1].samples_seconds_size(), 12);
  EXPECT_NEAR(timings[0].seconds(), 1e-3, 1e-9);
  EXPECT_NEAR(timings[1].seconds(), 2e-3, 1e-9);
  EXPECT_EQ(timings[0].timer_version(), kTimerVersion);
  EXPECT_EQ(timings[0].protocol(), v1::TIMING_PROTOCOL_WARM);
  EXPECT_EQ(device.flushes(), 0);
}

TEST(TimeCallsInTurnTest, TurnsGoThereAndBack) {
  FakeDevice device({1.0, 1.0, 1.0}, Steady);
  device.TimeInTurn(Budget(0));
  // Two calls to see how long they take, then the fewest turns.
  EXPECT_THAT(device.order(), ElementsAre(0, 0, 1, 1, 2, 2, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0));
}

TEST(TimeCallsInTurnTest, CallsThatNeedWarmCachesGetThem) {
  FakeDevice device({1e-3, 1e-3}, Steady);
  device.TimeInTurn(Budget(0));
  EXPECT_THAT(device.order(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0));
}

TEST(TimeCallsInTurnTest, ShortCallsAreTimedTogether) {
  FakeDevice device({100e-9, 200e-9}, Steady);
  const std::vector<v1::Timing> timings = device.TimeInTurn(Budget(1));
  EXPECT_NEAR(timings[1].seconds(), 200e-9, 1e-12);
  EXPECT_GE(device.calls(0), 24 * 500);
  EXPECT_GE(device.calls(1), 24 * 250);
  EXPECT_LT(device.calls(1), device.calls(0));
}

TEST(TimeCallsInTurnTest, ColdCallsAreFlushedEach) {
  FakeDevice device({1e-6, 1e-6}, Steady);
  TimingPlan plan = Budget(1);
  plan.protocol = v1::TIMING_PROTOCOL_COLD;
  const std::vector<v1::Timing> timings = device.TimeInTurn(plan);
  EXPECT_EQ(device.calls(0) + device.calls(1), device.flushes());
  EXPECT_EQ(timings[1].protocol(), v1::TIMING_PROTOCOL_COLD);
}

TEST(TimeCallsInTurnTest, BudgetEndsWhatIsNotKnownWell) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(1, 2);
  FakeDevice device({1e-3, 1e-3}, [&](double) { return noise(random); });
  device.TimeInTurn(Budget(0.2));
  EXPECT_GE(device.now(), 0.2);
  EXPECT_LE(device.now(), 0.25);
}

TEST(TimingsOfTest, KeepsTheSamplesInTheOrderOfTheTurns) {
  const std::vector<v1::Timing> timings =
      TimingsOf(v1::TIMING_PROTOCOL_WARM, {{1.0, 2.0}, {3.0, 6.0}, {2.0, 4.0}});
  EXPECT_THAT(timings[0].samples_seconds(), ElementsAre(1.0, 3.0, 2.0));
  EXPECT_THAT(timings[1].samples_seconds(), ElementsAre(2.0, 6.0, 4.0));
  EXPECT_NEAR(timings[0].seconds(), 2.0, 1e-12);
  EXPECT_NEAR(timings[1].seconds(), 4.0, 1e-12);
  EXPECT_NEAR(timings[1].ci_high_seconds(), 4.0, 1e-12) << "the moments differ, the candidates do not";
}

TEST(TimeTurnsTest, AFailureEndsThem) {
  int batches = 0;
  const auto timings = TimeTurns(
      Budget(1),
      [&]() -> absl::StatusOr<std::vector<Turn>> {
        if (++batches == 2) return absl::UnavailableError("gone");
        return std::vector<Turn>{{1e-3, 1e-3}};
      },
      [] { return 0.0; });
  EXPECT_TRUE(absl::IsUnavailable(timings.status()));
}

}  // namespace
}  // namespace mycc
