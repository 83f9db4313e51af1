#include "laboratory/decision_scorer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "tuner/space/refit.h"

namespace mycc {
namespace {

constexpr char kHere[] = "here";  // the group of a search's own samples
constexpr double kUnitSeconds = 1e-3;

ModelConfig ConfigOf(uint64_t seed) {
  ModelConfig config;
  config.seed = seed;
  return config;
}

class DecisionScorer : public LearningScorer {
 public:
  DecisionScorer(const Sketch& sketch, const std::string& prior, uint64_t seed)
      : sketches_{sketch}, prior_(ConfigOf(seed)), own_(ConfigOf(seed)) {
    if (prior.empty()) return;
    const absl::Status loaded = prior_.Load(prior);
    MYCC_CHECK(loaded.ok()) << loaded;
  }

  absl::Status Learn(const std::vector<SearchLedger::Entry>& generation) override {
    std::vector<Features> features;
    std::vector<const Features*> rows;
    for (const SearchLedger::Entry& entry : generation)
      features.push_back(DecisionFeatures(sketches_[0].space, entry.candidate.point.choice));
    for (const Features& row : features) rows.push_back(&row);
    MYCC_ASSIGN_OR_RETURN(const std::vector<Correction> expected, prior_.Predict(rows, kHere));
    for (size_t i = 0; i < generation.size(); ++i) {
      const std::optional<Outcome>& outcome = generation[i].outcome;
      if (!outcome || outcome->given_up()) continue;
      samples_.push_back(
          {std::move(features[i]), kUnitSeconds * expected[i].factor, outcome->seconds, kHere});
    }
    // Trained anew when there is a fifth more to learn from.
    if (5 * samples_.size() < 6 * version_) return absl::OkStatus();
    std::vector<const Sample*> samples;
    for (const Sample& sample : samples_) samples.push_back(&sample);
    version_ = samples_.size();
    return own_.Train(samples);
  }

  bool KnowsDecisionsAlone() const override { return true; }

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<Prediction>> predictions(
        traces.size(), absl::FailedPreconditionError("the trace's decisions are not of this space"));
    std::vector<Features> features;
    std::vector<size_t> places;
    for (size_t i = 0; i < traces.size(); ++i) {
      const std::optional<Point> point = PointOf(*traces[i], sketches_);
      if (!point) continue;
      features.push_back(DecisionFeatures(sketches_[0].space, point->choice));
      places.push_back(i);
    }
    std::vector<const Features*> rows;
    for (const Features& row : features) rows.push_back(&row);
    const auto expected = prior_.Predict(rows, kHere), corrected = own_.Predict(rows, kHere);
    MYCC_CHECK(expected.ok() && corrected.ok()) << expected.status() << " " << corrected.status();
    for (size_t i = 0; i < places.size(); ++i) {
      const double guess = kUnitSeconds * (*expected)[i].factor;
      predictions[places[i]] = Prediction{
          guess * (*corrected)[i].factor, guess,
          std::max((*expected)[i].failure_probability, (*corrected)[i].failure_probability), version_};
    }
    return predictions;
  }

 private:
  const std::vector<Sketch> sketches_;
  XgboostModel prior_, own_;
  std::vector<Sample> samples_;
  uint64_t version_ = 0;  // the number of samples that were trained on
};

}  // namespace

Features DecisionFeatures(const Space& space, const Choice& choice) {
  Features features;
  for (size_t d = 0; d < space.decisions.size(); ++d) {
    const int choices = static_cast<int>(space.decisions[d].choices.size());
    if (choices == 1) continue;
    if (space.decisions[d].ordered || choices == 2) {
      features.push_back(static_cast<float>(choice[d]));
      continue;
    }
    for (int i = 0; i < choices; ++i) features.push_back(choice[d] == i ? 1.0f : 0.0f);
  }
  // A space of one point has a feature as well.
  if (features.empty()) features.push_back(0);
  return features;
}

absl::StatusOr<std::unique_ptr<DecisionScorers>> DecisionScorers::Make(
    const Sketch& sketch, const std::vector<PriorResult>& prior) {
  auto scorers = absl::WrapUnique(new DecisionScorers(sketch));
  if (prior.empty()) return scorers;
  std::vector<Sample> samples;
  for (const PriorResult& result : prior) {
    samples.push_back({DecisionFeatures(sketch.space, result.choice), kUnitSeconds, result.seconds,
                       absl::StrCat("device ", result.device)});
  }
  std::vector<const Sample*> pointers;
  for (const Sample& sample : samples) pointers.push_back(&sample);
  XgboostModel model(ConfigOf(0));
  MYCC_RETURN_IF_ERROR(model.Train(pointers));
  MYCC_ASSIGN_OR_RETURN(scorers->prior_, model.Save());
  return scorers;
}

std::unique_ptr<LearningScorer> DecisionScorers::Make(uint64_t seed) const {
  return std::make_unique<DecisionScorer>(sketch_, prior_, seed);
}

}  // namespace mycc
