// `mycc explain`: prints each kernel's loop nest, or its lower code.
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/passes/lower.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "mycc/code_facts.h"
#include "mycc/commands.h"
#include "mycc/explain_diff.h"
#include "mycc/loop_origins.h"

namespace mycc {
namespace {

// The code of one kernel in the chosen form.
absl::StatusOr<std::string> Emit(const KernelSpec& kernel, const Target& target, const std::string& form) {
  if (form == "ir") return PrintLowered(kernel.lowered);
  if (!form.empty()) return EmitText(kernel, target, form);
  return ExplainNest(kernel.workload, target, kernel.trace);
}

// Lines that every form takes for comments.
std::string Comment(const std::string& text, const std::string& form) {
  const std::string mark = form == "llvm" ? "; " : form == "cuda" || form == "ptx" ? "// " : "# ";
  std::string body = text;
  while (!body.empty() && body.back() == '\n') body.pop_back();
  return absl::StrCat(mark, absl::StrReplaceAll(body, {{"\n", "\n" + mark}}), "\n");
}

absl::Status CheckForm(const ExplainOptions& options) {
  if (options.emit.empty() || options.emit == "ir") return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.source.target));
  const bool cuda = target.kind == TargetKind::kCuda;
  if (cuda ? options.emit == "cuda" || options.emit == "ptx"
           : options.emit == "llvm" || options.emit == "asm")
    return absl::OkStatus();
  return Misuse(absl::StrCat("--emit: `", options.emit, "`; expected ir, ",
                             cuda ? "cuda or ptx for a GPU" : "llvm or asm for a CPU"));
}

// A line for each fact about the code, and for the share of the peak that it reaches.
absl::StatusOr<std::string> FactsText(const KernelSpec& kernel, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(Facts facts, CodeFactsOf(kernel, target));
  facts.emplace_back("share of peak", ShareOfPeak(kernel.workload, target, kernel.expected_seconds));
  return absl::StrJoin(facts, "\n", absl::PairFormatter(": "));
}

}  // namespace

absl::Status ExplainCommand(const ExplainOptions& options, std::ostream& out) {
  if (!options.diff.empty()) {
    if (options.source.tuning_log.empty() || !options.source.file.empty())
      return Misuse("--diff: two records and --tuning-log with their log are expected, and no FILE");
    return ExplainDiff(options.source.tuning_log, options.diff.front(), options.diff.back(), out);
  }
  if (options.source.file.empty()) return Misuse("FILE is required");
  MYCC_RETURN_IF_ERROR(CheckForm(options));
  MYCC_ASSIGN_OR_RETURN(const Kernels kernels, ResolveKernels(options.source));
  bool first = true;
  for (const Found& found : kernels.found) {
    const KernelSpec& kernel = found.kernel;
    MYCC_ASSIGN_OR_RETURN(const std::string code, Emit(kernel, kernels.target, options.emit));
    std::string head = Headline(found);
    if (options.emit.empty()) {
      MYCC_ASSIGN_OR_RETURN(const std::string facts, FactsText(kernel, kernels.target));
      absl::StrAppend(&head, "\n", facts);
    }
    absl::StrAppend(&head, "\n", PrintTarget(kernels.target), "\n", PrintTrace(kernel.trace));
    out << (first ? "" : "\n") << Comment(head, options.emit) << code;
    first = false;
  }
  return absl::OkStatus();
}

}  // namespace mycc
