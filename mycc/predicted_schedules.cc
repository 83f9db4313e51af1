#include "mycc/predicted_schedules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/plural.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "tuner/cost/model_file.h"
#include "tuner/cost/model_kind.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/search/best_predicted.h"

namespace mycc {
namespace {

constexpr size_t kMostPredicted = 8;  // before none is taken to compile

absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", std::string(status.message())));
}

std::string DeviceOf(TargetKind kind) { return kind == TargetKind::kCpu ? "CPUs" : "GPUs"; }

}  // namespace

absl::StatusOr<std::unique_ptr<PredictedSchedules>> PredictedSchedules::Read(const std::string& file,
                                                                             const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file, kMostSourceBytes));
  const absl::StatusOr<ModelFile> model = ParseModelFile(contents);
  if (!model.ok()) return InFile(file, model.status());
  if (model->device != target.kind) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the model is for ", DeviceOf(model->device),
                                                   "; expected one for ", DeviceOf(target.kind)));
  }
  const std::string kind = ModelKind(target);
  const std::string other =
      model->kind == kind ? "" : absl::StrCat(" (another class than this target's, `", kind, "`)");
  std::unique_ptr<PredictedSchedules> schedules(
      new PredictedSchedules(target, absl::StrCat("model `", model->kind, "` of ", file, other)));
  if (const absl::Status loaded = schedules->learner_.Load(model->bytes); !loaded.ok())
    return InFile(file, loaded);
  schedules->JudgeModel(file);
  return schedules;
}

void PredictedSchedules::JudgeModel(const std::string& file) {
  const ModelMetrics& metrics = learner_.earlier().metrics();
  if (metrics.trees > 0) return;
  absl::StrAppend(&name_, ", which has no trees");
  warning_ = absl::StrCat(
      file, ": the model has no trees (", HowMany(metrics.samples, "valid candidate"),
      " taught it nothing that the analytic model lacks), so the analytic model alone chooses; expected one "
      "of more measured candidates: `mycc-tune log model show` says what each has learned");
}

absl::StatusOr<std::vector<ScoredSchedule>> PredictedSchedules::Best(const Workload& canonical,
                                                                     const std::vector<Trace>& near) {
  ScheduleScorer scorer(canonical, target_, WorkloadHash(canonical), &learner_);
  const std::vector<Member> members = BestPredicted(GenerateSketches(canonical, target_), near, &scorer);
  std::vector<ScoredSchedule> best;
  for (const Member& member : members) {
    if (best.size() == kMostPredicted) break;
    // Its time when it succeeds, without the doubt and the odds by which it ranks.
    ScoredSchedule schedule{.seconds = member.prediction->seconds};
    MYCC_ASSIGN_OR_RETURN(schedule.trace, ParseTrace(member.trace));
    MYCC_ASSIGN_OR_RETURN(const Schedule replayed, Replay(canonical, target_, schedule.trace));
    schedule.function = replayed.function();
    best.push_back(std::move(schedule));
  }
  return best;
}

}  // namespace mycc
