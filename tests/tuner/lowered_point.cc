#include "tests/tuner/lowered_point.h"

#include "absl/strings/str_cat.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/schedule.h"
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

}  // namespace mycc
