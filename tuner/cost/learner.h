// The cost model of a job while it runs: samples of earlier jobs, samples of this one, and the model trained
// on both whenever there are a fifth more. What it is depends on the order in which samples were added and on
// nothing else, so that a job that is resumed ends up with the same model. Thread rule: thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/cost/sample.h"
#include "tuner/cost/xgboost_model.h"

namespace mycc {

class Learner {
 public:
  explicit Learner(const ModelConfig& config = {}) : model_(config) {}

  // Bytes of Save(). InvalidArgument for others' bytes, other versions and damage; the learner stays as it
  // was.
  absl::Status Load(const std::string& bytes);
  // Samples and model; the latest samples alone where there are more than fit.
  absl::StatusOr<std::string> Save();

  // The samples of one generation. Trains no model yet.
  void Add(std::vector<Sample> samples);

  // Brings the model up to date with the samples that count by now; cheap when it is. To be called before
  // predictions.
  absl::Status Update();
  // The model as of the last Update. The address never changes.
  const XgboostModel& model() const { return model_; }
  int num_samples() const { return static_cast<int>(samples_.size()); }

 private:
  XgboostModel model_;
  std::vector<Sample> samples_;
  size_t due_ = 0;      // the model is to be of this many of the samples,
  size_t trained_ = 0;  // and is of this many
};

}  // namespace mycc
