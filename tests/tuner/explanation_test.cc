// Why two schedules differ, by a model of made-up samples.
#include "tuner/cost/explanation.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/search/rng.h"

namespace mycc {
namespace {

constexpr size_t kDecisive = 3, kIdle = 5;

// A time that one feature decides, and another changes nothing about.
std::vector<Sample> MadeUp(int count) {
  Rng rng(7, 0);
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    Sample sample;
    sample.features.assign(FunctionFeatureSlots().size(), 0.0f);
    sample.features[kDecisive] = static_cast<float>(rng.Below(8));
    sample.features[kIdle] = static_cast<float>(rng.Below(8));
    sample.analytic_seconds = 1e-3;
    sample.seconds = 1e-3 * std::exp(0.2 * sample.features[kDecisive]);
    sample.group = "task";
    samples.push_back(sample);
  }
  return samples;
}

Appraisal With(float decisive, float idle, double analytic_seconds) {
  Appraisal appraisal{Features(FunctionFeatureSlots().size(), 0.0f), analytic_seconds};
  appraisal.features[kDecisive] = decisive;
  appraisal.features[kIdle] = idle;
  return appraisal;
}

TEST(ExplanationTest, TheFeatureThatDecidesComesFirst) {
  const auto explained = ExplainRatio(MadeUp(200), With(1, 2, 1e-3), With(6, 7, 2e-3));
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_GT(explained->metrics.trees, 0);
  ASSERT_FALSE(explained->shares.empty());
  const FeatureShare& share = explained->shares.front();
  EXPECT_EQ(share.slot.name, FunctionFeatureSlots()[kDecisive].name);
  EXPECT_EQ(share.first, 1);
  EXPECT_EQ(share.second, 6);
  EXPECT_NEAR(share.log_ratio, 1.0, 0.15);
  EXPECT_NEAR(explained->analytic_log_ratio, std::log(2.0), 1e-9);
  double sum = explained->analytic_log_ratio;
  for (const FeatureShare& each : explained->shares) sum += each.log_ratio;
  EXPECT_NEAR(explained->log_ratio, sum, 1e-9);
}

TEST(ExplanationTest, TheSharesAddUpToTheModelsRatio) {
  const std::vector<Sample> samples = MadeUp(200);
  std::vector<const Sample*> rows;
  for (const Sample& sample : samples) rows.push_back(&sample);
  XgboostModel model;
  ASSERT_TRUE(model.Train(rows).ok());
  const Appraisal first = With(0, 1, 1e-3), second = With(7, 1, 1e-3);
  const auto corrections = model.Predict({&first.features, &second.features}, "task");
  ASSERT_TRUE(corrections.ok()) << corrections.status();
  const auto explained = ExplainRatio(samples, first, second);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_NEAR(explained->log_ratio, std::log((*corrections)[1].factor / (*corrections)[0].factor), 1e-4);
}

TEST(ExplanationTest, TooFewSamplesExplainNothing) {
  const auto explained = ExplainRatio(MadeUp(5), With(1, 2, 1e-3), With(6, 7, 2e-3));
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->metrics.trees, 0);
  EXPECT_TRUE(explained->shares.empty());
  EXPECT_NEAR(explained->log_ratio, std::log(2.0), 1e-9);
}

TEST(ExplanationTest, RowsOfAnotherWidthAreRefused) {
  const auto explained = ExplainRatio({}, {{1, 2, 3}, 1e-3}, With(6, 7, 2e-3));
  EXPECT_EQ(explained.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mycc
