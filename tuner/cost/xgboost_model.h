// The learned part of the cost model, in XGBoost: one booster corrects the analytic time, another predicts
// the probability of failure. No other file uses XGBoost.
//
// The first booster learns log(measured / analytic) less the task's mean, since only the order within a task
// counts. Fast candidates weigh more. The number of trees is chosen on held-out tasks; it is 0
// where the correction does not beat the analytic order. One thread and a fixed seed: the same samples in the
// same order give the same model, bit for bit. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/cost/metrics.h"
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
};

struct ModelMetrics {
  int samples = 0, failures = 0, groups = 0;
  int trees = 0;  // of the correction
  // The rows below are of tasks that were not trained on; otherwise of samples that were not.
  bool held_out_tasks = false;
  OrderMetrics corrected;  // of the held-out rows
  OrderMetrics analytic;   // of the same rows, uncorrected
};

class XgboostModel {
 public:
  explicit XgboostModel(const ModelConfig& config = {});
  ~XgboostModel();
  XgboostModel(XgboostModel&&) noexcept;
  XgboostModel& operator=(XgboostModel&&) noexcept;

  // From scratch on these samples. All features are of one width.
  absl::Status Train(const std::vector<const Sample*>& samples);
  // One correction for each row. The group's mean error is part of it where samples of that group were seen.
  absl::StatusOr<std::vector<Correction>> Predict(const std::vector<const Features*>& rows,
                                                  const std::string& group) const;

  const ModelMetrics& metrics() const { return metrics_; }

  // The trained model, as bytes. Load refuses others' bytes and other versions with InvalidArgument.
  absl::StatusOr<std::string> Save() const;
  absl::Status Load(const std::string& bytes);

 private:
  struct Booster;

  absl::Status TrainCorrection(const std::vector<const Sample*>& samples);
  absl::Status TrainFailures(const std::vector<const Sample*>& samples);
  absl::StatusOr<int> ChooseTrees(const std::vector<const Sample*>& samples);

  ModelConfig config_;
  ModelMetrics metrics_;
  uint32_t width_ = 0;                     // of the features; 0 before any training
  std::map<std::string, double> offsets_;  // mean of log(measured / analytic) of each group
  double mean_offset_ = 0;
  std::unique_ptr<Booster> correction_, failure_;  // null: none
};

}  // namespace mycc
