#include "tests/tuner/points.h"

#include <random>

#include "codegen/ir/verify.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr int kTries = 1200;  // few of the points may be legal

void CheckPoint(const Workload& workload, const Sketch& sketch, const Choice& choice, const Target& target,
                double tolerance) {
  const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::string text = PrintTrace(*trace);
  const absl::StatusOr<Trace> parsed = ParseTrace(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_TRUE(*parsed == *trace) << text;
  const absl::StatusOr<Schedule> schedule = Replay(workload, target, *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << text;
  const absl::Status verified = VerifyFunction(schedule->function());
  ASSERT_TRUE(verified.ok()) << verified << "\n" << text << PrintFunction(schedule->function());
  const absl::Status status = CheckFunction(workload, schedule->function(), tolerance);
  ASSERT_TRUE(status.ok()) << status << "\n" << text << PrintFunction(schedule->function());
}

bool IsFirst(const Space& space, const Choice& choice, const std::string& decision) {
  for (size_t d = 0; d < choice.size(); ++d) {
    if (space.decisions[d].name == decision) return choice[d] == 0;
  }
  return true;
}

}  // namespace

int CheckPoints(const Workload& workload, const Sketch& sketch, const Target& target, double tolerance,
                int most, const std::string& decision) {
  EXPECT_TRUE(sketch.space.Legal(sketch.default_choice)) << sketch.name;
  std::mt19937 rng(11);
  int checked = 0;
  for (int round = 0; round < kTries && checked < most; ++round) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; round > 0 && d < choice.size(); ++d)
      choice[d] = static_cast<int>(rng() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.Legal(choice)) continue;
    if (!decision.empty() && IsFirst(sketch.space, choice, decision)) continue;
    CheckPoint(workload, sketch, choice, target, tolerance);
    if (::testing::Test::HasFatalFailure()) return checked;
    ++checked;
  }
  return checked;
}

}  // namespace mycc
