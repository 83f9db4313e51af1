// The interface through which a search asks a cost model to predict its candidates. Thread rule:
// thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"

namespace mycc {

// A cost model's prediction for a candidate.
struct Prediction {
  double seconds = 0;              // the analytic estimate, corrected by what was learned
  double analytic_seconds = 0;     // without the correction
  double failure_probability = 0;  // that building, running or verifying it fails
  // The version of the model that predicted. Predictions of two versions are not comparable: a correction
  // that was learned between them shifts all of them.
  uint64_t model = 0;
  // The doubt about `seconds`: the standard deviation of their logarithm among the models of an ensemble.
  double log_spread = 0;
};

// Predicts traces by replay, features and model. Deterministic as long as its model does not
// change.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // One answer for each trace, in order; an error (with its reason) where the candidate must not be proposed:
  // the trace does not replay, or a limit of the target is exceeded. All answers of a call are of one model.
  virtual std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) = 0;
  // For each trace, in order, a digest of the code that it is lowered to: equal ones are equal code. Empty:
  // it is not known. An error where the trace cannot be lowered. Functions of the traces alone.
  virtual std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) {
    return std::vector<absl::StatusOr<std::string>>(traces.size(), std::string());
  }
  // True when it knows a trace's decisions and no code. Searches then learn by a model of their own
  // (decision_model.h), which starts from the analytic seconds.
  virtual bool KnowsDecisionsAlone() const { return false; }
};

}  // namespace mycc
