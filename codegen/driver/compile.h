// The whole way down in one call, for mycc, the worker's builder and tests alike: workload + trace -> lowered
// kernel.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Replays the trace on the canonical form of `workload`, lowers it, and keeps the workload's own names in the
// result. A GPU's code is emitted here, where another schedule can still be chosen; a library's CPU code is
// emitted as one module. FailedPrecondition also for what the target's back end refuses.
absl::StatusOr<KernelSpec> CompileKernel(const Workload& workload, const Target& target, const Trace& trace);
// The same where the trace was replayed already: `scheduled` is what it makes of the canonical workload.
absl::StatusOr<KernelSpec> CompileScheduled(const Workload& workload, const Target& target,
                                            const Trace& trace, const Function& scheduled);

// The identity of a kernel's code, whatever its names: of the lowered code, for a GPU also of the source, and
// of what turns it into machine code with its version. NotFound when that is a library which this machine
// lacks.
absl::StatusOr<std::string> CodeDigestOf(const KernelSpec& kernel, const Target& target);

// The code of one kernel as text: what the back end emits ("llvm" for a CPU, "cuda" for a GPU), or what is
// made of it ("asm", "ptx"). InvalidArgument for a form that the target's back end does not have.
absl::StatusOr<std::string> EmitText(const KernelSpec& kernel, const Target& target, const std::string& form);

// The reference kernel of a workload: the naive schedule of the computation with float reductions accumulated
// in f64, compiled by the same back end.
absl::StatusOr<KernelSpec> CompileReference(const Workload& workload, const Target& target);

}  // namespace mycc
