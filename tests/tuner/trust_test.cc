// When a model's predictions are followed.
#include "tuner/search/trust.h"

#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"

namespace mycc {
namespace {

// Measured candidates, each with what a model predicted.
class Measured {
 public:
  void Add(double predicted, std::optional<uint64_t> model, double seconds) {
    SearchLedger::Entry entry;
    entry.candidate.predicted_seconds = predicted;
    entry.candidate.model = model;
    entry.outcome = Outcome{0, static_cast<uint32_t>(entries_.size()), seconds, ""};
    entries_.push_back(std::move(entry));
  }
  std::vector<const SearchLedger::Entry*> entries() const {
    std::vector<const SearchLedger::Entry*> entries;
    for (const SearchLedger::Entry& entry : entries_) entries.push_back(&entry);
    return entries;
  }

 private:
  std::vector<SearchLedger::Entry> entries_;
};

TEST(TrustTest, TheRightOrderLeadsAndTheWrongOneDoesNot) {
  Measured right, wrong;
  for (int i = 1; i <= 16; ++i) {
    right.Add(i, 0, 2 * i);
    wrong.Add(17 - i, 0, 2 * i);
  }
  EXPECT_TRUE(PredictionsLead(right.entries()));
  EXPECT_FALSE(PredictionsLead(wrong.entries()));
}

// A new model took a factor of 2 from the predictions: within each model all pairs are right, across the two
// most are wrong.
TEST(TrustTest, PredictionsOfTwoModelsDoNotCompare) {
  Measured measured;
  for (int i = 1; i <= 16; ++i) measured.Add(1 + 0.5 * i / 16, 0, 2 + 1.0 * i / 16);
  for (int i = 1; i <= 16; ++i) measured.Add(1.6 + 0.3 * i / 16, 16, 1.6 + 0.3 * i / 16);
  EXPECT_TRUE(PredictionsLead(measured.entries()));
}

TEST(TrustTest, PredictionsOfUnknownModelsSayNothing) {
  Measured measured;
  for (int i = 1; i <= 16; ++i) measured.Add(17 - i, std::nullopt, i);
  EXPECT_TRUE(PredictionsLead(measured.entries()));
}

TEST(TrustTest, AFewPredictionsSayNothing) {
  Measured measured;
  for (int i = 1; i <= 7; ++i) measured.Add(8 - i, 0, i);
  EXPECT_TRUE(PredictionsLead(measured.entries()));
  measured.Add(0.5, 0, 8);
  EXPECT_FALSE(PredictionsLead(measured.entries()));
}

// The predictions at their proposal do not matter.
TEST(TrustTest, TheScaleIsOfTheModelOfToday) {
  const Sketch sketch = ContractionLikeSketch();
  SurfaceScorer scorer(1, 0);
  std::vector<SearchLedger::Entry> entries;
  for (int mr = 0; mr < 4; ++mr) {
    const Trace trace = *sketch.instantiate({mr, 1, 4, 4, 0, 0, 1});
    SearchLedger::Entry& entry = entries.emplace_back();
    entry.candidate.trace = PrintTrace(trace);
    entry.candidate.predicted_seconds = 1e3;
    entry.outcome = Outcome{0, static_cast<uint32_t>(mr), ContractionLikeSeconds(trace) / 3, ""};
  }
  std::vector<const SearchLedger::Entry*> measured;
  for (const SearchLedger::Entry& entry : entries) measured.push_back(&entry);
  EXPECT_NEAR(PredictionScale(measured, &scorer), 3, 1e-9);
  EXPECT_EQ(PredictionScale({}, &scorer), 1);
}

}  // namespace
}  // namespace mycc
