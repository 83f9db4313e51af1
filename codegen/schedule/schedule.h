// A schedule: a function, and the steps that transformed it from the naive loop nest. Applying a step does
// not change the function in place; a refused step leaves the schedule as it was.
//
// Names. A block is named after the tensor that it computes: t3. A loop is named after block and axis: t3.a0,
// t3.r1. split(t3.a0, [4, 8]) replaces a loop by t3.a0.0 and t3.a0.1, and so on. cache_read and cache_write
// name copies. All names are unique, so a step needs no context. Thread rule: thread-compatible; copies are
// cheap and independent.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"

namespace mycc {

class Schedule {
 public:
  // REQUIRES: canonical workload.
  static Schedule Create(const Workload& canonical, const Target& target);

  const Function& function() const { return function_; }
  const Target& target() const { return target_; }
  const Trace& trace() const { return trace_; }

  // Applies one parsed step; FailedPrecondition "split(t2.a0, [7]): ..." when it is not legal here.
  absl::Status Apply(const Step& step);

 private:
  Function function_;
  Target target_;
  Trace trace_;
};

// The function after one step; FailedPrecondition, as Schedule::Apply has it, when the step is not legal
// here.
absl::StatusOr<Function> ApplyStep(const Function& function, const Target& target, const Step& step);

// Applies all steps of `trace` to the naive nest. The error names the failing line.
absl::StatusOr<Schedule> Replay(const Workload& canonical, const Target& target, const Trace& trace);

}  // namespace mycc
