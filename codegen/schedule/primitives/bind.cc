// bind(l, vector): says how a loop's iterations are carried out: parallel (over the CPU's threads), vector
// (lanes of vector registers), unroll, or serial.
//
//   for l: B   ->   parallel l: B
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kMaxVector = 256;
constexpr int64_t kMaxUnroll = 512;

absl::Status CheckVector(const For& loop) {
  if (loop.var->extent > kMaxVector) {
    return absl::FailedPreconditionError(
        absl::StrCat("extent ", loop.var->extent, " is more than ", kMaxVector, " lanes"));
  }
  bool innermost = true;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    innermost &= stmt->kind != StmtKind::kFor && stmt->kind != StmtKind::kAlloc;
    return innermost;
  });
  return innermost ? absl::OkStatus() : absl::FailedPreconditionError("a vector loop must be innermost");
}

absl::Status CheckParallel(const Path& path) {
  if (IsReduceLoop(path.loop())) {
    return absl::FailedPreconditionError(
        "the loop carries a reduction: its iterations write the same elements");
  }
  const std::vector<const For*> around = LoopsOn(path);
  for (size_t i = 0; i + 1 < around.size(); ++i) {
    if (around[i]->loop_kind != LoopKind::kParallel) continue;
    if (DynAs<For>(around[i]->body) != around[i + 1]) {
      return absl::FailedPreconditionError(absl::StrCat("it stands inside the parallel loop ",
                                                        around[i]->var->name,
                                                        ", and not as the only statement directly inside"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Bind(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  LoopKind kind;
  if (!ParseLoopKind(args.Name(1), &kind)) {
    return absl::FailedPreconditionError(
        absl::StrCat(args.Name(1), " is not a loop kind; expected serial, parallel, vector or unroll"));
  }
  const For& loop = path.loop();
  if (kind == LoopKind::kVector) MYCC_RETURN_IF_ERROR(CheckVector(loop));
  if (kind == LoopKind::kParallel) MYCC_RETURN_IF_ERROR(CheckParallel(path));
  if (kind == LoopKind::kUnroll && loop.var->extent > kMaxUnroll) {
    return absl::FailedPreconditionError(
        absl::StrCat("extent ", loop.var->extent, " is more than ", kMaxUnroll, " copies"));
  }
  return WithBody(function, ReplaceAt(path, std::make_shared<For>(loop.var, loop.extent, kind, loop.body,
                                                                  loop.instruction)));
}

}  // namespace mycc
