// Schedules that a learned cost model chooses without any measurement: the file of --model, and a search
// under its predictions. Thread rule: thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "mycc/unmeasured_schedules.h"
#include "tuner/cost/learner.h"

namespace mycc {

class PredictedSchedules {
 public:
  // Reads a file of `mycc-tune log model export`. InvalidArgument, naming the file, for another file, a
  // damaged one, one of another build's features, and a model of another sort of device than the target.
  static absl::StatusOr<std::unique_ptr<PredictedSchedules>> Read(const std::string& file,
                                                                  const Target& target);

  // The schedules that the model expects to be fastest, the best first, with the seconds that it expects; at
  // most a few. `near`: traces of similar kernels, where the search begins besides the defaults. REQUIRES:
  // `canonical` is canonical.
  absl::StatusOr<std::vector<ScoredSchedule>> Best(const Workload& canonical, const std::vector<Trace>& near);

  // For people: "model `cost-cpu` of m.model".
  const std::string& name() const { return name_; }
  // Says so where the model has learned nothing of times, so that the analytic model alone chooses; else
  // empty.
  const std::string& warning() const { return warning_; }

 private:
  PredictedSchedules(Target target, std::string name) : target_(std::move(target)), name_(std::move(name)) {}

  void JudgeModel(const std::string& file);

  const Target target_;
  std::string name_;
  std::string warning_;
  Learner learner_;
};

}  // namespace mycc
