// A scorer that learns from what a search measures in a synthetic space, and from nothing else.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/tuner/synthetic_space.h"

namespace mycc {

// A model that has seen nothing but what the search has measured: to the mean logarithm of the seconds, each
// decision's value adds its own effect, little of it while it was measured rarely.
class LearningScorer : public Scorer {
 public:
  void Learn(const Candidate& candidate, const Outcome& outcome) {
    if (!outcome.ok()) return;
    samples_.push_back({ParseTrace(candidate.trace)->decisions, std::log(*outcome.seconds)});
    fitted_ = false;
  }

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    if (!fitted_) Fit();
    std::vector<absl::StatusOr<Prediction>> predictions;
    for (const Trace* trace : traces) {
      const double seconds = samples_.empty() ? 1e-3 : std::exp(Predict(trace->decisions));
      predictions.push_back(Prediction{seconds, 1e-3, 0, samples_.size()});
    }
    return predictions;
  }

 private:
  using Decisions = std::vector<std::pair<std::string, int64_t>>;
  struct Sample {
    Decisions decisions;
    double log_seconds;
  };

  double Predict(const Decisions& decisions) const {
    double sum = mean_;
    for (const auto& decision : decisions) {
      const auto effect = effects_.find(decision);
      if (effect != effects_.end()) sum += effect->second;
    }
    return sum;
  }

  // One decision after the other, several times.
  void Fit() {
    fitted_ = true;
    mean_ = 0;
    effects_.clear();
    for (const Sample& sample : samples_) mean_ += sample.log_seconds / static_cast<double>(samples_.size());
    const size_t decisions = samples_.empty() ? 0 : samples_[0].decisions.size();
    for (int sweep = 0; sweep < 3; ++sweep) {
      for (size_t d = 0; d < decisions; ++d) FitDecision(d);
    }
  }
  void FitDecision(size_t d) {
    std::map<int64_t, std::pair<double, double>> rests;  // sum and number
    for (const Sample& sample : samples_) {
      auto& [sum, number] = rests[sample.decisions[d].second];
      sum += sample.log_seconds - Predict(sample.decisions) + effects_[sample.decisions[d]];
      ++number;
    }
    const std::string& name = samples_[0].decisions[d].first;
    for (const auto& [value, rest] : rests) effects_[{name, value}] = rest.first / (rest.second + 1);
  }

  bool fitted_ = true;
  std::vector<Sample> samples_;
  double mean_ = 0;
  std::map<std::pair<std::string, int64_t>, double> effects_;
};

}  // namespace mycc
