// Compiles a workload with a trace to a lowered kernel, for mycc, the worker's builder and tests. Thread
// rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Replays the trace on the canonical form of `workload`, lowers it, and keeps the workload's own names in the
// result. GPU code is emitted here, because emission may refuse a schedule and another one can still be
// chosen. CPU code is emitted later, as one module for each library. FailedPrecondition also when the
// target's back end refuses the schedule.
absl::StatusOr<KernelSpec> CompileKernel(const Workload& workload, const Target& target, const Trace& trace);
// The same for a trace that was replayed already: `scheduled` is its result on the canonical workload.
absl::StatusOr<KernelSpec> CompileScheduled(const Workload& workload, const Target& target,
                                            const Trace& trace, const Function& scheduled);

// The identity of a kernel's code, independent of its names: a digest of the lowered code, for a GPU of the
// source too, and of the name and version of the compiler behind it. NotFound when that compiler is a library
// that this machine lacks.
absl::StatusOr<std::string> CodeDigestOf(const KernelSpec& kernel, const Target& target);

// The name and version of the compiler behind a target's code: "llvm-19.1.7", "nvrtc-13.0". NotFound as
// above.
absl::StatusOr<std::string> ToolchainOf(const Target& target);

// The code of one kernel as text: the back end's output ("llvm" for a CPU, "cuda" for a GPU), or the assembly
// made from it ("asm", "ptx"). InvalidArgument for a form that the target's back end does not have.
absl::StatusOr<std::string> EmitText(const KernelSpec& kernel, const Target& target, const std::string& form);

// The reference kernel of a workload: the naive schedule of the computation with float reductions accumulated
// in f64, compiled by the same back end.
absl::StatusOr<KernelSpec> CompileReference(const Workload& workload, const Target& target);

}  // namespace mycc
