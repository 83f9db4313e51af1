// `mycc explain`: prints each kernel's loop nest, or its lower code.
#include <algorithm>
#include <atomic>
#include <future>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/passes/lower.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "command/colour.h"
#include "command/misuse.h"
#include "command/model.h"
#include "command/sources.h"
#include "db/tuning_log.h"
#include "mycc/code_facts.h"
#include "mycc/commands.h"
#include "mycc/explain_diff.h"
#include "mycc/explain_why.h"
#include "mycc/loop_origins.h"
#include "mycc/model_report.h"
#include "tuner/space/space.h"

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

// Says why two products, one of them of the other as in attention, are not computed in one pass. The
// reasons are in canonical names.
Facts PassFacts(const KernelSpec& kernel, const Target& target) {
  if (IsStreamedSketch(kernel.trace.sketch)) return {};
  const Workload canonical = Canonicalize(kernel.workload);
  if (HasStreamedSketch(canonical, target))
    return {{"not in one pass", "this schedule was chosen, and a rule has one pass; mycc-tune tries both"}};
  Facts facts;
  for (const std::string& why : WhyNotStreamed(canonical, target)) facts.emplace_back("not in one pass", why);
  return facts;
}

// A line for each fact about the code, and for the share of the peak that it reaches.
std::string FactsText(const KernelSpec& kernel, const Target& target) {
  Facts facts = PassFacts(kernel, target);
  for (auto& fact : CodeFactsOf(kernel, target)) facts.push_back(std::move(fact));
  facts.emplace_back("share of peak", ShareOfPeak(kernel.workload, target, kernel.expected_seconds));
  return absl::StrJoin(facts, "\n", absl::PairFormatter(": "));
}

// The texts of the kernels' facts. Each needs its machine code, so that all processors make it.
std::vector<std::string> FactsTexts(const Kernels& kernels) {
  std::vector<std::string> texts(kernels.found.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < texts.size(); i = next++)
      texts[i] = FactsText(kernels.found[i].kernel, kernels.target);
  };
  std::vector<std::future<void>> helpers;
  const size_t cpus = std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(cpus, texts.size()); ++i)
    helpers.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& helper : helpers) helper.get();
  return texts;
}

// The launches of a model, and the workloads behind them.
absl::Status ExplainModel(const ExplainOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const Kernels kernels, ResolveProgram(options.source));
  const ModelProgram& program = *kernels.program;
  if (options.dot) {
    out << ModelDot(program);
    return absl::OkStatus();
  }
  out << LaunchTable(program);
  for (const ChosenGrouping& grouping : kernels.groupings) out << GroupingLine(grouping) << "\n";
  for (const Workload& kernel : program.kernels) out << "\n" << PrintWorkload(kernel);
  return absl::OkStatus();
}

absl::Status ExplainKernels(const ExplainOptions& options, const Kernels& kernels, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningLog> log,
                        TuningLog::Open(options.source.tuning_log, OpenMode::kRead));
  for (size_t i = 0; i < kernels.found.size(); ++i) {
    out << (i == 0 ? "" : "\n");
    MYCC_RETURN_IF_ERROR(ExplainWhy(*log, kernels.found[i], kernels.target, out));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExplainCommand(const ExplainOptions& options, std::ostream& out) {
  if (!options.diff.empty()) {
    if (options.source.tuning_log.empty() || !options.source.model.file.empty())
      return Misuse("--diff: two records and --tuning-log with their log are expected, and no FILE");
    return ExplainDiff(options.source.tuning_log, options.diff.front(), options.diff.back(), out);
  }
  if (options.source.model.file.empty()) return Misuse("FILE is required");
  if (options.dot && !IsModel(options.source.model.file)) return Misuse("--dot is for models (.onnx)");
  if (IsModel(options.source.model.file) && options.emit.empty() && !options.why)
    return ExplainModel(options, out);
  MYCC_RETURN_IF_ERROR(CheckForm(options));
  MYCC_ASSIGN_OR_RETURN(const Kernels kernels, ResolveKernels(options.source));
  for (const std::string& warning : kernels.warnings) std::cerr << WarningLine("mycc", warning);
  if (options.why) return ExplainKernels(options, kernels, out);
  const std::vector<std::string> facts =
      options.emit.empty() ? FactsTexts(kernels) : std::vector<std::string>();
  for (size_t i = 0; i < kernels.found.size(); ++i) {
    const KernelSpec& kernel = kernels.found[i].kernel;
    MYCC_ASSIGN_OR_RETURN(const std::string code, Emit(kernel, kernels.target, options.emit));
    std::string head = Headline(kernels.found[i]);
    if (!facts.empty()) absl::StrAppend(&head, "\n", facts[i]);
    absl::StrAppend(&head, "\n", PrintTarget(kernels.target), "\n", PrintTrace(kernel.trace));
    if (!options.emit.empty()) absl::StrAppend(&head, "\n", NamesOfTensors(kernel.workload));
    out << (i == 0 ? "" : "\n") << Comment(head, options.emit) << code;
  }
  return absl::OkStatus();
}

}  // namespace mycc
