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

// Kernels whose times depend on where they lie: at each placement each has a factor of its own.
class PlacedDevice {
 public:
  PlacedDevice(std::vector<double> seconds, double spread, uint32_t seed)
      : seconds_(std::move(seconds)), random_(seed), factor_(0, spread) {}

  // The factors of one placement.
  std::vector<TimedCall> Place(int placement) {
    placements_.push_back(placement);
    std::vector<TimedCall> calls;
    for (size_t i = 0; i < seconds_.size(); ++i) {
      const double seconds = seconds_[i] * std::exp(factor_(random_));
      calls.push_back({[this, seconds, i] {
        order_.push_back(i);
        now_ += seconds;
      }});
    }
    return calls;
  }
  absl::StatusOr<std::vector<v1::Timing>> Time(const TimingPlan& plan) {
    return TimeCallsAtPlacements(
        plan, [this](int placement) -> absl::StatusOr<std::vector<TimedCall>> { return Place(placement); },
        [this] { return now_; });
  }
  double now() const { return now_; }

  const std::vector<int>& placements() const { return placements_; }
  const std::vector<size_t>& order() const { return order_; }

 private:
  const std::vector<double> seconds_;
  std::mt19937 random_;
  std::normal_distribution<double> factor_;
  std::vector<int> placements_;
  std::vector<size_t> order_;
  double now_ = 0;
};

bool Overlap(const v1::Timing& a, const v1::Timing& b) {
  return a.ci_low_seconds() <= b.ci_high_seconds() && b.ci_low_seconds() <= a.ci_high_seconds();
}

TEST(TimeCallsAtPlacementsTest, TheIntervalHoldsWhatOtherPlacementsAdd) {
  int told_apart = 0, told_apart_at_one = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    PlacedDevice device({1e-4, 1e-4}, 0.03, seed);
    const std::vector<v1::Timing> timings = *device.Time(Budget(1));
    told_apart += !Overlap(timings[0], timings[1]);
    const std::vector<v1::Timing> at_one =
        TimeCallsInTurn(Budget(1), device.Place(0), [&device] { return device.now(); });
    told_apart_at_one += !Overlap(at_one[0], at_one[1]);
  }
  EXPECT_LE(told_apart, 3) << "of 60 pairs of the same code";
  EXPECT_GT(told_apart_at_one, 50) << "which one placement alone would";
}

TEST(TimeCallsAtPlacementsTest, TellsApartWhatDiffers) {
  PlacedDevice device({1e-4, 1.1e-4}, 0.02, 1);
  const std::vector<v1::Timing> timings = *device.Time(Budget(1));
  EXPECT_FALSE(Overlap(timings[0], timings[1]));
  EXPECT_NEAR(timings[1].seconds() / timings[0].seconds(), 1.1, 0.03);
  EXPECT_EQ(timings[0].samples_seconds_size(), timings[1].samples_seconds_size());
}

TEST(TimeCallsAtPlacementsTest, ThereAreSixteenWithTheOrderReversedInTurn) {
  PlacedDevice device({1e-3, 1e-3}, 0, 1);
  ASSERT_TRUE(device.Time(Budget(1000)).ok());
  ASSERT_THAT(device.placements(), SizeIs(kPlacements));
  for (int i = 0; i < kPlacements; ++i) EXPECT_EQ(device.placements()[i], i);
  PlacedDevice hurried({1.0, 1.0}, 0, 1);
  ASSERT_TRUE(hurried.Time(Budget(0)).ok());
  EXPECT_THAT(hurried.placements(), ElementsAre(0)) << "the time is up at once";
  PlacedDevice short_of_time({1.0, 1.0}, 0, 1);
  ASSERT_TRUE(short_of_time.Time(Budget(30)).ok());
  EXPECT_THAT(short_of_time.placements(), ElementsAre(0, 1, 2, 3));
  // Two calls of each to see how long they take, then the fewest turns.
  const std::vector<size_t> first(hurried.order().begin(), hurried.order().begin() + 12),
      second(short_of_time.order().begin() + 12, short_of_time.order().begin() + 24);
  EXPECT_THAT(first, ElementsAre(0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0));
  EXPECT_THAT(second, ElementsAre(0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1));
}

TEST(TimeCallsAtPlacementsTest, APlacementThatWouldTakeTooLongIsNotBegun) {
  PlacedDevice device({1e-3, 1e-3}, 0, 1);
  TimingPlan plan = Budget(1);
  plan.placing_seconds = 2;
  ASSERT_TRUE(device.Time(plan).ok());
  EXPECT_THAT(device.placements(), ElementsAre(0));
}

TEST(TimeCallsAtPlacementsTest, APlacementThatFailsEndsThem) {
  PlacedDevice device({1.0, 1.0}, 0, 1);
  const auto timings = TimeCallsAtPlacements(
      Budget(100),
      [&](int placement) -> absl::StatusOr<std::vector<TimedCall>> {
        if (placement == 2) return absl::ResourceExhaustedError("no memory");
        return device.Place(placement);
      },
      [&device] { return device.now(); });
  EXPECT_TRUE(absl::IsResourceExhausted(timings.status()));
}

TEST(TimingsOfTest, FewPlacementsSayNothingOfOthers) {
  const std::vector<std::vector<Turn>> three(3, {{1.0, 2.0}, {1.1, 2.0}, {1.0, 2.1}});
  const std::vector<v1::Timing> placed = TimingsOf(v1::TIMING_PROTOCOL_WARM, three);
  std::vector<Turn> together;
  for (const auto& turns : three) together.insert(together.end(), turns.begin(), turns.end());
  const std::vector<v1::Timing> flat = TimingsOf(v1::TIMING_PROTOCOL_WARM, together);
  EXPECT_EQ(placed[0].SerializeAsString(), flat[0].SerializeAsString());
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

// A team of threads that waits for a processor takes a thousand times as long, in most of the turns.
TEST(TimingsOfTest, OneDisturbedCandidateIsNotTheMoment) {
  std::vector<Turn> turns;
  for (int i = 0; i < 20; ++i) {
    const double moment = 1 + 0.1 * (i % 3), waits = i % 5 < 3 ? 1000 + 100 * i : 1;
    turns.push_back({1.00 * moment, 1.01 * moment, 1.02 * moment, waits});
  }
  const std::vector<v1::Timing> timings = TimingsOf(v1::TIMING_PROTOCOL_WARM, turns);
  EXPECT_NEAR(timings[1].seconds() / timings[0].seconds(), 1.01, 1e-9);
  EXPECT_LT(timings[0].ci_high_seconds() - timings[0].ci_low_seconds(), 1e-9);
  EXPECT_LT(timings[2].ci_high_seconds() - timings[2].ci_low_seconds(), 1e-9);
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
