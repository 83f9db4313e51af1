// The learned part of the cost model: an ensemble of boosters corrects the analytic time, another booster
// predicts the probability of failure.
//
// The ensemble learns log(measured / analytic) less the task's mean, since only the order within a task
// counts (objective.h has the alternatives). Fast candidates weigh more, and those of the task at hand as
// well. The number of trees is chosen on held-out rows: of the task at hand where there are enough, else on
// held-out tasks. It is 0 where the correction comes no closer to the times, or, on held-out tasks, orders
// them worse than the analytic times do. On held-out tasks the correction is also shortened to the share that
// serves them best: part of what was learned holds for the learned tasks alone. The members differ in the
// rows and columns that their trees see, and their disagreement says how far the mean is to be trusted. A
// booster has one thread and a fixed seed: the same samples in the same order give the same model, bit for
// bit, on any number of threads. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/parallel_for.h"
#include "tuner/cost/booster.h"
#include "tuner/cost/metrics.h"
#include "tuner/cost/objective.h"
#include "tuner/cost/sample.h"

namespace mycc {

struct ModelConfig {
  uint64_t seed = 0;
  int min_samples = 12;  // successful ones, below which every correction is 1
  int min_failures = 6;  // below which no failure is predicted
  int max_trees = 200;
  int patience = 15;  // trees without improvement on the held-out tasks
  double eta = 0.12;
  int depth = 6;
  Objective objective = Objective::kLogRatio;
  int members = 3;            // of the ensemble
  double task_weight = 4;     // of a sample of the task at hand
  int min_task_samples = 20;  // of the task at hand, from which a fifth is held out
};

struct ModelMetrics {
  int samples = 0, failures = 0, groups = 0;
  int trees = 0;     // of the correction
  double share = 1;  // of the logarithm of the trees' correction that is applied
  // The rows below are of tasks that were not trained on; otherwise of samples that were not.
  bool held_out_tasks = false;
  OrderMetrics corrected;  // of the held-out rows
  OrderMetrics analytic;   // of the same rows, uncorrected
};

class XgboostModel {
 public:
  explicit XgboostModel(const ModelConfig& config = {}) : config_(config) {}

  // From scratch on these samples. All features are of one width. `task`: the group at hand; none where it is
  // empty. The boosters are divided among the threads of `parallel`; null: one after the other.
  absl::Status Train(const std::vector<const Sample*>& samples, const std::string& task = "",
                     ParallelFor* parallel = nullptr);
  // One correction for each row. The group's mean error is part of it where samples of that group were seen.
  absl::StatusOr<std::vector<Correction>> Predict(const std::vector<const Features*>& rows,
                                                  const std::string& group) const;

  // The features' shares of the correction of one row, as Shapley values: an entry for each feature, whose
  // sum differs from the logarithm of the factor by the same constant for all rows of a group, as far as the
  // factor is not limited. All 0 without a correction.
  absl::StatusOr<std::vector<double>> Contributions(const Features& row) const;
  // Each feature's share of the gain of all trees of the correction; all 0 without a correction.
  absl::StatusOr<std::vector<double>> Gains() const;

  // The number of features of a row; 0 before any training.
  uint32_t width() const { return width_; }
  // Those of the training, also after Load.
  const ModelMetrics& metrics() const { return metrics_; }

  // The trained model, as bytes. Load refuses others' bytes and other versions with InvalidArgument.
  absl::StatusOr<std::string> Save() const;
  absl::Status Load(const std::string& bytes);

 private:
  // The offsets, and the number of trees. TrainMember makes the boosters.
  absl::Status PrepareCorrection(const std::vector<const Sample*>& samples, const std::string& task);
  absl::Status TrainMember(const std::vector<const Sample*>& samples, const std::string& task, int member);
  absl::Status TrainFailures(const std::vector<const Sample*>& samples);
  absl::StatusOr<int> ChooseTrees(const std::vector<const Sample*>& samples, const std::string& task);
  BoosterConfig BoosterOf(int member) const;
  absl::Status CheckWidth(const Features& row) const;
  // The mean of ln(factor) of the members, and their spread, into the corrections.
  absl::Status Correct(const BoosterMatrix& matrix, std::vector<Correction>* corrections) const;

  ModelConfig config_;
  ModelMetrics metrics_;
  uint32_t width_ = 0;                     // of the features; 0 before any training
  std::map<std::string, double> offsets_;  // mean of log(measured / analytic) of each group
  double mean_offset_ = 0;
  std::vector<Booster> members_;  // none: no correction
  std::optional<Booster> failure_;
};

}  // namespace mycc
