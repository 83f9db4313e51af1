// The cost model of a running job. It has two stages: the model of earlier jobs corrects the analytic time
// and stays as it was loaded; the job's own models correct the remaining error and are trained on the job's
// samples. Each task has a model of its own, in which its own samples weigh more than those of the job's
// other tasks. So what was measured in this job counts fully, what was measured of the task at hand counts
// most, and training costs the same however many samples were loaded.
//
// A model's version is the number of the job's samples that it was trained on, in the order in which they
// were added. The version that predicts next is a function of the loaded bytes, the samples, and the version
// of the latest proposals. So a job that is resumed with these three continues with the same model.
//
// Memory is bounded: 2000 samples of each task, and 32 models. A sample that no training will see is dropped,
// and so is the model that was used least recently. It is trained again, to the same model, when its task is
// searched again. Thread rule: one owner, and nobody else uses `parallel` during a call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/parallel_for.h"
#include "tuner/cost/sample.h"
#include "tuner/cost/xgboost_model.h"

namespace mycc {

class Learner {
 public:
  // The boosters of a training are divided among the threads of `parallel`, which outlives the learner; null:
  // one after the other.
  explicit Learner(const ModelConfig& config = {}, ParallelFor* parallel = nullptr)
      : config_(config), parallel_(parallel), earlier_model_(config) {}

  // Bytes of Save(). InvalidArgument for others' bytes, other versions and damage; the learner stays as it
  // was. A model of another class of devices is trained anew when this job's is saved. REQUIRES: no samples
  // yet.
  absl::Status Load(const std::string& bytes, bool of_another_class = false);
  // The loaded samples, and the latest 1000 of the job's samples of each task; the latest alone where there
  // are more than fit. The model is trained from scratch on these samples once a fifth of them are new to it.
  // Until then it is the loaded one: a job after thousands of samples does not end with seconds of training.
  absl::StatusOr<std::string> Save() const;

  // The samples of one generation of this job. Trains no model yet. REQUIRES: the version of every later
  // Proposed is that of the latest one before, or the number of samples at an Update after it.
  absl::Status Add(const std::vector<Sample>& samples);
  // The latest proposals were made by the model of this version: growth counts from there.
  void Proposed(uint64_t version);

  // Brings the group's model up to date: it is trained anew when the job's samples of this
  // group, or of all, are a fifth more than the latest proposals' model had. Cheap when it is up to date.
  absl::Status Update(const std::string& group);
  // One correction of the analytic time for each row. FailedPrecondition unless the job has no samples yet,
  // or the last Update was of this group.
  absl::StatusOr<std::vector<Correction>> Predict(const std::vector<const Features*>& rows,
                                                  const std::string& group) const;
  uint64_t version() const { return version_; }  // as of the last Update; 0: before any training

  // The metrics of the training on the job's own samples, for the group of the last Update.
  ModelMetrics metrics() const;
  // The model that was loaded.
  const XgboostModel& earlier() const { return earlier_model_; }
  // How many of the loaded samples this model was not trained on.
  uint64_t num_unseen() const { return unseen_; }
  // In memory.
  int num_samples() const { return static_cast<int>(earlier_.size() + own_.size()); }
  int num_models() const { return static_cast<int>(own_models_.size()); }

 private:
  struct OwnSample {
    Sample sample;                // with the analytic time corrected by the earlier model
    double analytic_seconds = 0;  // the plain one
    uint64_t number = 0;          // among all of the job
  };
  struct OwnModel {
    uint64_t version = 0;
    XgboostModel model;
    uint64_t used = 0;  // the number of the Update
  };

  uint64_t VersionDue(const std::string& group) const;
  // The latest of the job's first `count` samples: more of the group than of others.
  std::vector<const Sample*> TrainingSet(const std::string& group, uint64_t count) const;
  // Drops the samples of the group that no training will see.
  void Forget(const std::string& group);
  // Makes room for one more model.
  void ForgetModel();

  const ModelConfig config_;
  ParallelFor* const parallel_;
  std::vector<Sample> earlier_;
  XgboostModel earlier_model_;
  uint64_t unseen_ = 0;
  std::vector<OwnSample> own_;                            // the job's samples that are kept, in order
  uint64_t num_own_ = 0;                                  // of the job, with those that were dropped
  std::map<std::string, std::vector<uint64_t>> numbers_;  // of all samples, by group
  std::map<std::string, size_t> kept_;                    // samples in memory, by group
  std::map<std::string, OwnModel> own_models_;            // by group; a memo
  uint64_t updates_ = 0;
  uint64_t version_ = 0;
  uint64_t proposed_by_ = 0;
  std::optional<std::string> updated_for_;  // the group of the last Update, while nothing has changed since
};

}  // namespace mycc
