#include "tests/tuner/lowered_point.h"

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {

absl::Status CheckLoweredPoint(const Workload& workload, const Target& target, const Sketch& sketch,
                               const Choice& choice, double tolerance) {
  const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
  if (!trace.ok()) return trace.status();
  const auto of_trace = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", PrintTrace(*trace)));
  };
  const absl::StatusOr<Schedule> schedule = Replay(workload, target, *trace);
  if (!schedule.ok()) return of_trace(schedule.status());
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
  if (!lowered.ok()) return of_trace(lowered.status());
  const absl::Status same = CheckFunction(workload, WholeFunction(*lowered), tolerance);
  return same.ok() ? same : of_trace(same);
}

std::string ValueOf(const Sketch& sketch, const Choice& choice, const std::string& name) {
  for (size_t d = 0; d < choice.size(); ++d) {
    if (absl::EndsWith(sketch.space.decisions[d].name, "." + name))
      return absl::StrCat(sketch.space.decisions[d].choices[choice[d]]);
  }
  return "";
}

void CheckLowered(const std::string& text, const Target& target, const std::string& rule, int most,
                  const std::string& decision, const std::string& value, double tolerance) {
  const Workload workload = CanonicalWorkload(text);
  const std::vector<Sketch> sketches = GenerateSketches(workload, target);
  const auto found = std::ranges::find_if(sketches, [&](const Sketch& s) { return s.name == rule; });
  ASSERT_NE(found, sketches.end()) << rule << " is none; the first is " << sketches.front().name << "\n"
                                   << text;
  const Sketch& sketch = *found;
  std::mt19937 rng(7);
  int checked = 0;
  for (int round = 0; round < 4000 && checked < most; ++round) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; round > 0 && d < choice.size(); ++d)
      choice[d] = static_cast<int>(rng() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.Legal(choice)) continue;
    if (!decision.empty() && ValueOf(sketch, choice, decision) != value) continue;
    const absl::Status same = CheckLoweredPoint(workload, target, sketch, choice, tolerance);
    ASSERT_TRUE(same.ok()) << same;
    ++checked;
  }
  EXPECT_EQ(checked, most);
}

}  // namespace mycc
