// Timing of calls under a simulated clock.
#include "worker/timer.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(MedianOfTest, OddEvenAndSingle) {
  EXPECT_EQ(MedianOf({3, 1, 2}).median, 2);
  EXPECT_EQ(MedianOf({4, 1, 2, 3}).median, 2.5);
  const MedianInterval one = MedianOf({7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
}

// The interval holds the true median about as often as it says, whatever the distribution.
TEST(MedianOfTest, IntervalCoversTheMedian) {
  std::mt19937 random(1);
  std::exponential_distribution<double> skewed(1);
  const double true_median = std::log(2);
  for (const int n : {20, 50, 200}) {
    int covered = 0;
    for (int trial = 0; trial < 1000; ++trial) {
      std::vector<double> samples(static_cast<size_t>(n));
      for (double& sample : samples) sample = skewed(random);
      const MedianInterval interval = MedianOf(samples);
      covered += interval.low <= true_median && true_median <= interval.high;
    }
    EXPECT_GE(covered, 920) << n << " samples";
  }
}

// A device whose calls take what `seconds` says, on a clock of its own.
class FakeKernel {
 public:
  explicit FakeKernel(std::function<double(int)> seconds) : seconds_(std::move(seconds)) {}
  v1::Timing Time(const TimingPlan& plan) {
    TimedCall timed{[this] { now_ += seconds_(calls_++); }};
    if (plan.protocol == v1::TIMING_PROTOCOL_COLD) timed.before = [this] { ++flushes_; };
    return TimeCalls(plan, timed, [this] { return now_; });
  }
  int calls() const { return calls_; }
  int flushes() const { return flushes_; }
  double now() const { return now_; }

 private:
  const std::function<double(int)> seconds_;
  double now_ = 0;
  int calls_ = 0, flushes_ = 0;
};

TEST(TimeCallsTest, SteadyKernelNeedsFewSamples) {
  FakeKernel kernel([](int) { return 1e-3; });
  const v1::Timing timing = kernel.Time({});
  EXPECT_NEAR(timing.seconds(), 1e-3, 1e-12);
  EXPECT_EQ(timing.samples_seconds_size(), 7);
  EXPECT_EQ(timing.timer_version(), kTimerVersion);
  EXPECT_EQ(timing.protocol(), v1::TIMING_PROTOCOL_WARM);
  EXPECT_EQ(kernel.flushes(), 0);
}

TEST(TimeCallsTest, WarmUpIsNotASample) {
  FakeKernel kernel([](int call) { return call < 2 ? 1.0e-2 : 1e-3; });
  EXPECT_NEAR(kernel.Time({}).ci_high_seconds(), 1e-3, 1e-12);
}

TEST(TimeCallsTest, NoisyKernelIsRepeatedUntilTheBudgetEnds) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(1e-3, 2e-3);
  FakeKernel kernel([&](int) { return noise(random); });
  TimingPlan plan;
  plan.budget_seconds = 0.05;
  const v1::Timing timing = kernel.Time(plan);
  EXPECT_GT(timing.samples_seconds_size(), 20);
  EXPECT_NEAR(kernel.now(), 0.05, 3e-3);
  EXPECT_NEAR(timing.seconds(), 1.5e-3, 2.5e-4);
  EXPECT_LT(timing.ci_low_seconds(), timing.seconds());
  EXPECT_GT(timing.ci_high_seconds(), timing.seconds());
}

TEST(TimeCallsTest, ShortCallsAreTimedTogether) {
  FakeKernel kernel([](int) { return 100e-9; });
  const v1::Timing timing = kernel.Time({});
  EXPECT_NEAR(timing.seconds(), 100e-9, 1e-12);
  EXPECT_GE(kernel.calls(), 7 * 500);
}

TEST(TimeCallsTest, ColdCallsAreFlushedEach) {
  FakeKernel kernel([](int) { return 1e-6; });
  TimingPlan plan;
  plan.protocol = v1::TIMING_PROTOCOL_COLD;
  const v1::Timing timing = kernel.Time(plan);
  EXPECT_EQ(kernel.calls(), kernel.flushes());
  EXPECT_EQ(timing.protocol(), v1::TIMING_PROTOCOL_COLD);
}

TEST(TimeCallsTest, LoserIsDroppedAfterAProbe) {
  FakeKernel kernel([](int) { return 1e-2; });
  TimingPlan plan;
  plan.best_seconds = 1e-3;
  plan.budget_seconds = 10;
  EXPECT_EQ(kernel.Time(plan).samples_seconds_size(), 2);
}

TEST(TimeCallsTest, CloseLoserIsDroppedOnceItIsSure) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(1.9e-3, 2.5e-3);
  FakeKernel kernel([&](int) { return noise(random); });
  TimingPlan plan;
  plan.best_seconds = 1e-3;
  plan.budget_seconds = 10;
  EXPECT_EQ(kernel.Time(plan).samples_seconds_size(), 7);
}

TEST(TimeCallsTest, SlowCallIsMadeOnceWhateverTheBudget) {
  FakeKernel kernel([](int) { return 2.0; });
  const v1::Timing timing = kernel.Time({});
  EXPECT_EQ(timing.samples_seconds_size(), 1);
  EXPECT_EQ(timing.seconds(), 2.0);
}

// Another machine slows this one by half for four hundredths of a second of every tenth, and the kernel that
// tells so as well.
TEST(TimeCallsTest, SlowMomentsAreCorrected) {
  double now = 0;
  const auto slowness = [&now] { return std::fmod(now, 0.1) < 0.06 ? 1 : 1.5; };
  const auto take = [&](double seconds) {
    const double slow = slowness();
    now += seconds * slow;
    return slow;
  };
  const auto time = [&](double begin, bool is_corrected) {
    now = begin;
    TimedCall timed{[&] { take(1e-3); }};
    if (is_corrected) timed.slowness = [&] { return take(0.8e-3); };
    return TimeCalls({}, timed, [&] { return now; });
  };
  EXPECT_NEAR(time(0.03, true).seconds(), 1e-3, 1e-9);
  const v1::Timing slow = time(0.062, true);
  EXPECT_NEAR(slow.seconds(), 1e-3, 1e-9);
  EXPECT_NEAR(slow.samples_seconds(0), 1.5e-3, 1e-9) << "samples are kept as they were";
  EXPECT_NEAR(time(0.062, false).seconds(), 1.5e-3, 1e-9);
}

// A sample of the other kernel that was interrupted makes nothing faster than it is.
TEST(TimeCallsTest, AnInterruptedMomentCorrectsNothing) {
  double now = 0;
  int moments = 0;
  TimedCall timed{[&] { now += 1e-3; }};
  timed.slowness = [&] { return ++moments % 3 == 0 ? 80.0 : 1.0; };
  EXPECT_NEAR(TimeCalls({}, timed, [&] { return now; }).seconds(), 1e-3, 1e-9);
  timed.slowness = [] { return 80.0; };
  EXPECT_GE(TimeCalls({}, timed, [&] { return now; }).seconds(), 0.3e-3);
}

// A kernel whose calls take another time at each placement.
class PlacedKernel {
 public:
  explicit PlacedKernel(std::vector<double> seconds, double placing_seconds = 0)
      : seconds_(std::move(seconds)), placing_seconds_(placing_seconds) {}
  absl::StatusOr<v1::Timing> Time(const TimingPlan& plan) {
    return TimeCallAtPlacements(
        plan,
        [this](int placement) -> absl::StatusOr<TimedCall> {
          placements_ = placement + 1;
          if (placement > 0) now_ += placing_seconds_;
          const double seconds = seconds_.at(static_cast<size_t>(placement));
          if (seconds < 0) return absl::ResourceExhaustedError("no memory");
          return TimedCall{[this, seconds] { now_ += seconds; }};
        },
        [this] { return now_; });
  }
  int placements() const { return placements_; }

 private:
  const std::vector<double> seconds_;
  const double placing_seconds_;
  double now_ = 0;
  int placements_ = 0;
};

TEST(TimeCallAtPlacementsTest, OneSlowPlacementDoesNotCount) {
  for (const size_t slow : {0u, 1u, 2u, 3u}) {
    std::vector<double> seconds = {1.00e-4, 1.01e-4, 1.02e-4, 1.03e-4};
    seconds[slow] = 1.5e-4;
    PlacedKernel kernel(seconds);
    const v1::Timing timing = *kernel.Time({.best_seconds = 1e-4});
    EXPECT_EQ(kernel.placements(), kPlacementsAlone);
    EXPECT_NEAR(timing.seconds(), 1.015e-4, 0.006e-4) << "slow at " << slow;
    EXPECT_NEAR(timing.ci_high_seconds(), 1.5e-4, 1e-9);
    EXPECT_LT(timing.ci_low_seconds(), 1.02e-4);
    EXPECT_EQ(timing.samples_seconds_size() % kPlacementsAlone, 0);
  }
}

TEST(TimeCallAtPlacementsTest, WhatIsBehindAtTwoIsDropped) {
  PlacedKernel behind({2e-4, 1.5e-4, 1e-4, 1e-4});
  EXPECT_NEAR(behind.Time({.best_seconds = 1e-4})->seconds(), 1.5e-4, 1e-9);
  EXPECT_EQ(behind.placements(), 2);
  PlacedKernel disturbed({1e-2, 1.1e-4, 1.1e-4, 1.2e-4});
  EXPECT_NEAR(disturbed.Time({.best_seconds = 1e-4})->seconds(), 1.1e-4, 1e-9);
  EXPECT_EQ(disturbed.placements(), kPlacementsAlone);
}

TEST(TimeCallAtPlacementsTest, LongCallsHaveOnePlacement) {
  PlacedKernel kernel({0.5, 0.5, 0.5, 0.5});
  const v1::Timing timing = *kernel.Time({});
  EXPECT_EQ(kernel.placements(), 1);
  EXPECT_NEAR(timing.seconds(), 0.5, 1e-9);
}

// A worker stops a candidate that takes much longer than its budget.
TEST(TimeCallAtPlacementsTest, APlacementThatWouldTakeTooLongIsNotBegun) {
  for (const auto& [placing, placements] : {std::pair(0.2, 1), {0.06, 3}, {0.02, 4}}) {
    PlacedKernel kernel({1e-3, 1e-3, 1e-3, 1e-3}, placing);
    ASSERT_TRUE(kernel.Time({.budget_seconds = 0.2, .placing_seconds = placing}).ok());
    EXPECT_EQ(kernel.placements(), placements) << placing << " s each";
  }
}

TEST(TimeCallAtPlacementsTest, APlacementThatFailsEndsIt) {
  PlacedKernel kernel({1e-4, -1, 1e-4, 1e-4});
  EXPECT_TRUE(absl::IsResourceExhausted(kernel.Time({}).status()));
}

}  // namespace
}  // namespace mycc
