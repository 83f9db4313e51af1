// A learned scorer on the decisions alone, for spaces without code to lower: it predicts from what the search
// has measured, and from what other devices measured in the same space. Other learners plug in behind
// LearningScorer and ScorerMaker. Thread rule: a maker is immutable and serves several threads, a scorer is
// thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/cost/sample.h"
#include "tuner/cost/xgboost_model.h"
#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"
#include "tuner/space/space.h"

namespace mycc {

class LearningScorer : public Scorer {
 public:
  // A generation with all its outcomes. Generations come in order; predictions change here alone.
  virtual absl::Status Learn(const std::vector<SearchLedger::Entry>& generation) = 0;
};

class ScorerMaker {
 public:
  virtual ~ScorerMaker() = default;
  // A scorer for one search, a function of the maker and the seed.
  virtual std::unique_ptr<LearningScorer> Make(uint64_t seed) const = 0;
};

// One configuration's result on another device.
struct PriorResult {
  Choice choice;
  std::optional<double> seconds;  // absent when it failed
  int device = 0;                 // times of one device compare with each other
};

// XGBoost on the decisions. `prior` is learned once: its predictions stand where an analytic estimate stands
// for kernels with code, and each search corrects them by its own samples.
class DecisionScorers : public ScorerMaker {
 public:
  static absl::StatusOr<std::unique_ptr<DecisionScorers>> Make(const Sketch& sketch,
                                                               const std::vector<PriorResult>& prior);
  std::unique_ptr<LearningScorer> Make(uint64_t seed) const override;

 private:
  explicit DecisionScorers(const Sketch& sketch) : sketch_(sketch) {}

  const Sketch sketch_;
  std::string prior_;  // a trained model's bytes; empty: nothing is known
};

// The features of a point: an ordered decision's place, and one slot for each choice of another.
Features DecisionFeatures(const Space& space, const Choice& choice);

}  // namespace mycc
