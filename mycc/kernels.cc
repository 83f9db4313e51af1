#include "mycc/kernels.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/ir/debug.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "mycc/lock_file.h"
#include "mycc/predicted_schedules.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

absl::Status In(const std::string& where, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", std::string(status.message())));
}

absl::StatusOr<Found> CompileTrace(const std::string& file, const Workload& workload, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMostSourceBytes));
  absl::StatusOr<Trace> trace = ParseTrace(text);
  if (!trace.ok()) return In(file, trace.status());
  absl::StatusOr<KernelSpec> kernel = CompileKernel(workload, target, *trace);
  if (!kernel.ok()) return In(file, kernel.status());
  kernel->reason = Reason::kTrace;
  return Found{*std::move(kernel), absl::StrCat("given: ", file)};
}

absl::StatusOr<std::vector<Workload>> WorkloadsOf(const KernelSource& source, const ChooseGroupings& choose,
                                                  Kernels* kernels) {
  if (!IsModel(source.model.file)) {
    MYCC_ASSIGN_OR_RETURN(Tasks tasks, ReadTasks(source.model, kernels->target));
    return std::move(tasks.workloads);
  }
  MYCC_ASSIGN_OR_RETURN(kernels->program,
                        ReadModelWith(source.model, kernels->target, choose, &kernels->groupings));
  return kernels->program->kernels;
}

ChooseGroupings AsLocked(const LockFile& lock) {
  return [&lock](const ModelProgram& program) { return GroupingsNamed(program, lock.groupings); };
}

ChooseGroupings Fastest(const ScheduleFinder& finder) {
  return [&finder](const ModelProgram& program) { return FastestGroupings(program, finder); };
}

KernelUse UseOf(const KernelSource& source) {
  return IsModel(source.model.file) ? KernelUse::kInModel : KernelUse::kAlone;
}

// Null without a log.
absl::StatusOr<std::unique_ptr<TuningLog>> OpenLog(const std::string& file) {
  if (file.empty()) return nullptr;
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<TuningLog> log, TuningLog::Open(file, OpenMode::kRead));
  log->OnDamage([](int64_t, const absl::Status& why) {
    std::fprintf(stderr, "mycc: %s; it is passed over\n", std::string(why.message()).c_str());
  });
  return log;
}

// Null without a model.
absl::StatusOr<std::unique_ptr<PredictedSchedules>> OpenModel(const KernelSource& source,
                                                              const Target& target) {
  if (source.cost_model.empty()) return nullptr;
  return PredictedSchedules::Read(source.cost_model, target);
}

// Prints what MYCC_DEBUG asks for about a kernel whose schedule is chosen.
absl::Status PrintChosen(const Found& found, const Target& target) {
  const int level = GetPassDebug().level;
  const KernelSpec& kernel = found.kernel;
  if (level >= kDebugChosen)
    std::fprintf(stderr, "%s\n%s", Printable(Headline(found)).c_str(),
                 Printable(PrintTrace(kernel.trace)).c_str());
  if (level < kDebugCode) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const std::string code,
                        EmitText(kernel, target, target.kind == TargetKind::kCuda ? "cuda" : "asm"));
  std::fputs(code.c_str(), stderr);
  return absl::OkStatus();
}

// The kernels of a locked build, for the lock's target.
absl::StatusOr<Kernels> ResolveLocked(const KernelSource& source) {
  MYCC_ASSIGN_OR_RETURN(const LockFile lock, ReadLock(source.lock));
  MYCC_RETURN_IF_ERROR(CheckLockedSource(lock, source.model));
  Kernels kernels;
  MYCC_ASSIGN_OR_RETURN(kernels.target, ReadTarget(source.target == "host" ? lock.target : source.target));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, WorkloadsOf(source, AsLocked(lock), &kernels));
  MYCC_ASSIGN_OR_RETURN(kernels.found, CompileLocked(lock, workloads, kernels.target,
                                                     kernels.program ? &*kernels.program : nullptr));
  return kernels;
}

}  // namespace

absl::StatusOr<Kernels> ResolveKernels(const KernelSource& source) {
  if (!source.lock.empty()) return ResolveLocked(source);
  Kernels kernels;
  MYCC_ASSIGN_OR_RETURN(kernels.target, ReadTarget(source.target));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningLog> log, OpenLog(source.tuning_log));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<PredictedSchedules> model, OpenModel(source, kernels.target));
  if (model != nullptr && !model->warning().empty()) kernels.warnings.push_back(model->warning());
  const ScheduleFinder finder(log.get(), kernels.target, UseOf(source), model.get());
  MYCC_ASSIGN_OR_RETURN(const std::vector<Workload> workloads,
                        WorkloadsOf(source, Fastest(finder), &kernels));
  if (!source.trace.empty() && workloads.size() != 1) {
    return Misuse(absl::StrCat("--trace: `", source.model.file, "` has ", workloads.size(),
                               " workloads; a trace is for a file with one"));
  }
  for (const Workload& workload : workloads) {
    absl::StatusOr<Found> found =
        source.trace.empty() ? finder.Find(workload) : CompileTrace(source.trace, workload, kernels.target);
    if (!found.ok() && !source.trace.empty()) return found.status();  // it names the trace's file
    if (!found.ok()) return In(absl::StrCat(source.model.file, ": workload ", workload.name), found.status());
    MYCC_RETURN_IF_ERROR(PrintChosen(*found, kernels.target));
    kernels.found.push_back(*std::move(found));
  }
  return kernels;
}

absl::StatusOr<Kernels> ResolveProgram(const KernelSource& source) {
  Kernels kernels;
  MYCC_ASSIGN_OR_RETURN(kernels.target, ReadTarget(source.target));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningLog> log, OpenLog(source.tuning_log));
  const ScheduleFinder finder(log.get(), kernels.target, UseOf(source));
  MYCC_RETURN_IF_ERROR(WorkloadsOf(source, Fastest(finder), &kernels).status());
  return kernels;
}

}  // namespace mycc
