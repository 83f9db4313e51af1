// The order of a pool's members, and what its memo must not change.
#include "tuner/search/pool.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"

namespace mycc {
namespace {

// Predicts for the values of one decision what the test says.
class ToldScorer : public Scorer {
 public:
  explicit ToldScorer(std::vector<Prediction> told) : told_(std::move(told)) {}
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<Prediction>> predictions;
    for (const Trace* trace : traces)
      predictions.push_back(told_.at(static_cast<size_t>(trace->decisions[0].second)));
    return predictions;
  }

 private:
  const std::vector<Prediction> told_;
};

std::vector<double> ExpectedSeconds(const std::vector<Prediction>& told) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < told.size(); ++i) values.push_back(static_cast<int64_t>(i));
  const std::vector<Sketch> sketches = {SketchOf("line", {{"x", values}})};
  ToldScorer scorer(told);
  const SearchLedger ledger;
  absl::flat_hash_set<Point> dead;
  const Pool::Context context{.sketches = sketches,
                              .ledger = ledger,
                              .scorer = &scorer,
                              .unranked_order = [](const Point&) { return 0.0; },
                              .refuse = [](const std::string&) {},
                              .dead = &dead};
  Pool pool(context);
  std::vector<std::pair<Point, Origin>> points;
  for (size_t i = 0; i < told.size(); ++i)
    points.emplace_back(Point{0, {static_cast<int>(i)}}, Origin::kRandom);
  pool.Add(points);
  std::vector<double> expected(told.size());
  for (const Member& member : pool.members())
    expected[static_cast<size_t>(member.point.choice[0])] = member.expected_seconds;
  return expected;
}

Prediction Of(double seconds, double log_spread, double failure = 0) {
  return {.seconds = seconds,
          .analytic_seconds = seconds,
          .failure_probability = failure,
          .log_spread = log_spread};
}

TEST(PoolTest, DoubtMakesACandidateFasterByHalfOfItAndATenthAtMost) {
  const std::vector<double> expected = ExpectedSeconds(
      {Of(1e-3, 0), Of(1e-3, 0.04), Of(1e-3, 0.2), Of(1e-3, 5), Of(1e-3, 0.04, 0.5), Of(0.9e-3, 0)});
  EXPECT_EQ(expected[0], 1e-3);
  EXPECT_DOUBLE_EQ(expected[1], 1e-3 * std::exp(-0.02));
  EXPECT_DOUBLE_EQ(expected[2], 1e-3 * std::exp(-0.1)) << "half of the doubt is the most";
  EXPECT_DOUBLE_EQ(expected[3], 1e-3 * std::exp(-0.1)) << "however large it is";
  EXPECT_DOUBLE_EQ(expected[4], 2e-3 * std::exp(-0.02)) << "and failures count beside it";
  EXPECT_LT(expected[5], expected[3]) << "what is surely a tenth faster comes first";
}

}  // namespace
}  // namespace mycc
