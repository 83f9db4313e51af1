#include "tests/llvm/sketch_points.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/verify.h"
#include "codegen/schedule/schedule.h"
#include "tests/llvm/compiled.h"

namespace mycc {

absl::Status CheckSketchPoint(const Workload& canonical, const Target& target, const Sketch& sketch,
                              const Choice& choice, double tolerance) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, sketch.instantiate(choice));
  const auto explained = [&](const absl::Status& status) {
    return status.ok() ? status
                       : absl::InternalError(absl::StrCat(status.message(), "\n", PrintTrace(trace)));
  };
  const absl::StatusOr<Schedule> schedule = Replay(canonical, target, trace);
  MYCC_RETURN_IF_ERROR(explained(schedule.status()));
  MYCC_RETURN_IF_ERROR(explained(VerifyFunction(schedule->function())));
  return explained(CheckCompiledFunction(canonical, schedule->function(), target, tolerance));
}

}  // namespace mycc
