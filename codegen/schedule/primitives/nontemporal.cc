// nontemporal(l): stores of whole vectors to outputs under loop l bypass the caches, and do not read the
// cache line first. It is for outputs too large to stay in a cache until they are read.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

bool WritesOutput(const Function& function, const Block& block) {
  for (const Param& param : function.params) {
    if (param.kind == ParamKind::kOutput && param.buffer == block.out) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Function> Nontemporal(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  if (target.kind == TargetKind::kCuda)
    return absl::FailedPreconditionError(
        "nontemporal stores are for CPUs; on GPUs the compiler chooses them");
  const For& loop = path.loop();
  bool writes = false;
  for (const Block* block : BlocksUnder(path.target())) writes |= WritesOutput(function, *block);
  if (!writes) {
    return absl::FailedPreconditionError(
        absl::StrCat("no block under ", loop.var->name, " writes an output of the workload"));
  }
  LoopMarks marks = loop.marks;
  marks.nontemporal = true;
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
