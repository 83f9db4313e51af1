#include "codegen/library/compile.h"

#include "base/status.h"
#include "codegen/library/reference_kernel.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"

namespace mycc {

absl::StatusOr<KernelSpec> CompileKernel(const Workload& workload, const Target& target, const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(Canonicalize(workload), target, trace));
  KernelSpec spec;
  spec.workload = workload;
  spec.trace = trace;
  MYCC_ASSIGN_OR_RETURN(spec.lowered, Lower(schedule.function(), target));
  return spec;
}

absl::StatusOr<KernelSpec> CompileReference(const Workload& workload, const Target& target) {
  KernelSpec spec;
  spec.workload = workload;
  MYCC_ASSIGN_OR_RETURN(spec.lowered, Lower(ReferenceFunction(Canonicalize(workload)), target));
  return spec;
}

}  // namespace mycc
