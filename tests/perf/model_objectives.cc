// Compares the training objectives of the cost model (tuner/cost/objective.h) on the samples of tuning logs.
// Each task is predicted by a model of all tasks but those of its fold, and so of tasks that it was not
// trained on. Prints a table, and the figures of the objective in use as `name: value` lines.
//
// Usage: model_objectives LOG...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/perf/recorded_samples.h"
#include "tuner/cost/metrics.h"
#include "tuner/cost/xgboost_model.h"

namespace mycc {
namespace {

constexpr size_t kFolds = 8;
constexpr double kClear = 0.03;  // pairs that differ by less are left out
constexpr size_t kTop = 5;

struct Figures {
  double pairwise = 0, top5 = 0, worst_top5 = 1, recall = 0;
  int tasks = 0;
};

struct Method {
  const char* name;
  bool learned;
  Objective objective;
};
constexpr Method kMethods[] = {
    {"analytic alone", false, Objective::kLogRatio},
    {"log ratio", true, Objective::kLogRatio},
    {"pairs", true, Objective::kPairs},
    {"best tenth", true, Objective::kBestTenth},
};

std::vector<const Sample*> Successful(const RecordedTask& task) {
  std::vector<const Sample*> samples;
  for (const Sample& sample : task.samples) {
    if (sample.seconds) samples.push_back(&sample);
  }
  return samples;
}

absl::Status Judge(const XgboostModel& model, const RecordedTask& task, Figures* figures) {
  const std::vector<const Sample*> samples = Successful(task);
  if (samples.size() < 2 * kTop) return absl::OkStatus();
  std::vector<const Features*> rows;
  for (const Sample* sample : samples) rows.push_back(&sample->features);
  MYCC_ASSIGN_OR_RETURN(const std::vector<Correction> corrections, model.Predict(rows, "unseen"));
  std::vector<Predicted> predicted;
  for (size_t i = 0; i < samples.size(); ++i) {
    predicted.push_back({std::log(samples[i]->analytic_seconds * corrections[i].factor),
                         std::log(*samples[i]->seconds), task.name});
  }
  const double top5 = BestOfTop(predicted, kTop);
  figures->pairwise += ClearPairs(predicted, kClear);
  figures->recall += EvaluateOrder(predicted).recall_at_k;
  figures->top5 += top5;
  figures->worst_top5 = std::min(figures->worst_top5, top5);
  ++figures->tasks;
  return absl::OkStatus();
}

absl::StatusOr<Figures> Try(const Method& method, const std::map<std::string, RecordedTask>& tasks) {
  Figures figures;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<const Sample*> trained;
    size_t number = 0;
    for (const auto& [group, task] : tasks) {
      if (number++ % kFolds == fold) continue;
      for (const Sample& sample : task.samples) trained.push_back(&sample);
    }
    XgboostModel model({.objective = method.objective});
    if (method.learned) MYCC_RETURN_IF_ERROR(model.Train(trained));
    number = 0;
    for (const auto& [group, task] : tasks) {
      if (number++ % kFolds == fold) MYCC_RETURN_IF_ERROR(Judge(model, task, &figures));
    }
  }
  if (figures.tasks == 0)
    return absl::NotFoundError("no task with 10 valid candidates; expected one, at least");
  for (double* sum : {&figures.pairwise, &figures.top5, &figures.recall}) *sum /= figures.tasks;
  return figures;
}

absl::Status Run(const std::vector<std::string>& logs) {
  MYCC_ASSIGN_OR_RETURN(const auto tasks, ReadRecordedTasks(logs));
  size_t samples = 0;
  for (const auto& [group, task] : tasks) samples += task.samples.size();
  std::printf("%zu tasks, %zu samples, %zu features\n\n", tasks.size(), samples,
              FunctionFeatureSlots().size());
  std::printf("| objective      | pairwise accuracy | best of top 5 | worst task | best tenth found |\n");
  std::printf("|----------------|-------------------|---------------|------------|------------------|\n");
  Figures in_use;
  for (const Method& method : kMethods) {
    MYCC_ASSIGN_OR_RETURN(const Figures figures, Try(method, tasks));
    std::printf("| %-14s | %17.3f | %13.3f | %10.3f | %16.3f |\n", method.name, figures.pairwise,
                figures.top5, figures.worst_top5, figures.recall);
    std::fflush(stdout);
    if (method.learned && method.objective == ModelConfig().objective) in_use = figures;
  }
  std::printf("\npairwise_accuracy: %.3f\ntop5_of_best: %.3f\n", in_use.pairwise, in_use.top5);
  return absl::OkStatus();
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const std::vector<std::string> logs(argv + 1, argv + argc);
  if (logs.empty()) {
    std::fprintf(stderr, "usage: model_objectives LOG...\n");
    return 2;
  }
  if (const absl::Status status = mycc::Run(logs); !status.ok()) {
    std::fprintf(stderr, "model_objectives: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
