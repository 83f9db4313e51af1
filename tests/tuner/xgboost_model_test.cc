// The learned model on made-up samples: it learns order and failures, and no noise.
#include "tuner/cost/xgboost_model.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/samples.h"
#include "tuner/cost/bytes.h"
#include "tuner/search/rng.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

std::vector<const Sample*> Pointers(const std::vector<Sample>& samples) {
  std::vector<const Sample*> pointers;
  for (const Sample& sample : samples) pointers.push_back(&sample);
  return pointers;
}

std::vector<Correction> Predict(const XgboostModel& model, const std::vector<Sample>& samples,
                                const std::string& group) {
  std::vector<const Features*> rows;
  for (const Sample& sample : samples) rows.push_back(&sample.features);
  const auto corrections = model.Predict(rows, group);
  EXPECT_TRUE(corrections.ok()) << corrections.status();
  return *corrections;
}

TEST(XgboostModelTest, LearnsTheOrderOfTasksItHasNotSeen) {
  const std::vector<Sample> samples = MakeSamples(8, 60, 1), others = MakeSamples(3, 60, 99);
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  EXPECT_EQ(model.metrics().samples, 480);
  EXPECT_EQ(model.metrics().groups, 8);
  EXPECT_TRUE(model.metrics().held_out_tasks);
  EXPECT_GT(model.metrics().trees, 10);
  EXPECT_LT(model.metrics().corrected.rmse, 0.5 * model.metrics().analytic.rmse);

  std::vector<Predicted> analytic, corrected;
  const std::vector<Correction> corrections = Predict(model, others, "unseen");
  for (size_t i = 0; i < others.size(); ++i) {
    analytic.push_back({std::log(others[i].analytic_seconds), std::log(*others[i].seconds), others[i].group});
    corrected.push_back({analytic.back().predicted + std::log(corrections[i].factor),
                         analytic.back().measured, others[i].group});
  }
  EXPECT_LT(EvaluateOrder(analytic).pairwise_accuracy, 0.75);
  EXPECT_GT(EvaluateOrder(corrected).pairwise_accuracy, 0.9);
  EXPECT_GT(EvaluateOrder(corrected).recall_at_k, EvaluateOrder(analytic).recall_at_k);
}

TEST(XgboostModelTest, KnownTasksArePredictedInSeconds) {
  const std::vector<Sample> samples = MakeSamples(4, 60, 1);
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  const std::vector<Sample> first(samples.begin(), samples.begin() + 60);
  const std::vector<Correction> corrections = Predict(model, first, "task0");
  double error = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    error += std::abs(std::log(first[i].analytic_seconds * corrections[i].factor / *first[i].seconds)) / 60;
  }
  EXPECT_LT(error, 0.15);
}

TEST(XgboostModelTest, TheSameSamplesGiveTheSameBytes) {
  const std::vector<Sample> samples = MakeSamples(4, 40, 1);
  XgboostModel a, b;
  ASSERT_TRUE(a.Train(Pointers(samples)).ok());
  ASSERT_TRUE(b.Train(Pointers(MakeSamples(2, 40, 7))).ok());  // what it learned before leaves no trace
  ASSERT_TRUE(b.Train(Pointers(samples)).ok());
  EXPECT_EQ(*a.Save(), *b.Save());
}

// One generation of a search is enough to begin with.
TEST(XgboostModelTest, SixteenSamplesCorrectAFactor) {
  std::vector<Sample> samples = MakeSamples(1, 16, 1);
  for (Sample& sample : samples) sample.seconds = 2 * sample.analytic_seconds;
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  for (const Correction& correction : Predict(model, samples, "task0"))
    EXPECT_NEAR(correction.factor, 2, 1e-6);
}

TEST(XgboostModelTest, FewSamplesCorrectNothing) {
  const std::vector<Sample> samples = MakeSamples(1, 10, 1);
  XgboostModel model;
  EXPECT_EQ(Predict(model, samples, "task0")[0].factor, 1);
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  EXPECT_EQ(Predict(model, samples, "task0")[0].factor, 1);
  ASSERT_TRUE(model.Train({}).ok());
}

// No trees are taken when the analytic time is all there is to know.
TEST(XgboostModelTest, NoiseIsNotLearned) {
  std::vector<Sample> samples = MakeSamples(6, 30, 1);
  Rng rng(5);
  for (Sample& sample : samples) sample.seconds = sample.analytic_seconds * (1 + 0.2 * rng.Unit());
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  EXPECT_LE(model.metrics().trees, 5);
}

TEST(XgboostModelTest, TasksThatWereNotSeenAreOrderedNoWorseThanByAnalyticTimes) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    // A feature means the opposite in every other task, more or less.
    std::vector<Sample> samples = MakeSamples(12, 40, seed);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double sense = (i / 40) % 2 == 0 ? 1 : -0.8;
      samples[i].seconds = samples[i].analytic_seconds * std::exp(sense * samples[i].features[0]);
    }
    XgboostModel model;
    ASSERT_TRUE(model.Train(Pointers(samples)).ok());
    const ModelMetrics& metrics = model.metrics();
    EXPECT_TRUE(metrics.held_out_tasks);
    EXPECT_GE(metrics.corrected.pairwise_accuracy, metrics.analytic.pairwise_accuracy) << "seed " << seed;
    EXPECT_LE(metrics.share, 1);
    EXPECT_GE(metrics.share, 0.5);
  }
}

TEST(XgboostModelTest, FailuresArePredicted) {
  std::vector<Sample> samples = MakeSamples(3, 80, 1);
  for (Sample& sample : samples) {
    if (sample.features[4] > 0.7) sample.seconds.reset();
  }
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  EXPECT_GT(model.metrics().failures, 40);
  double failed = 0, succeeded = 0;
  int failures = 0;
  const std::vector<Sample> others = MakeSamples(1, 200, 3);
  const std::vector<Correction> corrections = Predict(model, others, "task0");
  for (size_t i = 0; i < others.size(); ++i) {
    const bool fails = others[i].features[4] > 0.7;
    failures += fails;
    (fails ? failed : succeeded) += corrections[i].failure_probability;
  }
  EXPECT_GT(failed / failures, 0.8);
  EXPECT_LT(succeeded / (200 - failures), 0.2);
}

TEST(XgboostModelTest, SavedModelsPredictTheSame) {
  std::vector<Sample> samples = MakeSamples(4, 60, 1);
  for (size_t i = 0; i < samples.size(); i += 9) samples[i].seconds.reset();
  XgboostModel model, loaded;
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  ASSERT_TRUE(loaded.Load(*model.Save()).ok());
  EXPECT_EQ(loaded.metrics().trees, model.metrics().trees);
  EXPECT_EQ(loaded.metrics().corrected.pairwise_accuracy, model.metrics().corrected.pairwise_accuracy);
  const auto a = Predict(model, samples, "task1"), b = Predict(loaded, samples, "task1");
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].factor, b[i].factor);
    EXPECT_EQ(a[i].failure_probability, b[i].failure_probability);
  }
}

// Where no sample is near, the members of the ensemble disagree more.
TEST(XgboostModelTest, DoubtIsTheSpreadOfTheEnsemble) {
  const std::vector<Sample> samples = MakeSamples(4, 60, 1);
  XgboostModel model, alone({.members = 1});
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  ASSERT_TRUE(alone.Train(Pointers(samples)).ok());
  double spread = 0, most = 0;
  for (const Correction& correction : Predict(model, MakeSamples(1, 100, 5), "task0")) {
    spread += correction.log_spread / 100;
    most = std::max(most, correction.log_spread);
  }
  EXPECT_GT(spread, 0.005);
  EXPECT_LT(spread, 0.3);
  EXPECT_GT(most, 1.5 * spread);
  for (const Correction& correction : Predict(alone, samples, "task0")) EXPECT_EQ(correction.log_spread, 0);
}

TEST(XgboostModelTest, EveryObjectiveLearnsTheOrder) {
  const std::vector<Sample> samples = MakeSamples(8, 60, 1), others = MakeSamples(3, 60, 99);
  for (const Objective objective : {Objective::kLogRatio, Objective::kPairs, Objective::kBestTenth}) {
    XgboostModel model({.objective = objective});
    ASSERT_TRUE(model.Train(Pointers(samples)).ok());
    const std::vector<Correction> corrections = Predict(model, others, "unseen");
    std::vector<Predicted> analytic, corrected;
    for (size_t i = 0; i < others.size(); ++i) {
      const double log = std::log(others[i].analytic_seconds);
      analytic.push_back({log, std::log(*others[i].seconds), others[i].group});
      corrected.push_back({log + std::log(corrections[i].factor), analytic.back().measured, others[i].group});
    }
    EXPECT_GT(EvaluateOrder(corrected).pairwise_accuracy, EvaluateOrder(analytic).pairwise_accuracy + 0.05)
        << BoosterObjective(objective);
  }
}

TEST(XgboostModelTest, GainsAndContributionsNameWhatMatters) {
  const std::vector<Sample> samples = MakeSamples(6, 60, 1);
  XgboostModel model;
  EXPECT_TRUE(model.Gains().value().empty());
  ASSERT_TRUE(model.Train(Pointers(samples)).ok());
  const std::vector<double> gains = model.Gains().value();
  ASSERT_EQ(gains.size(), 10u);
  EXPECT_GT(gains[0], 0.4);
  EXPECT_GT(gains[0] + gains[1] + gains[2], 0.8);
  const std::vector<double> shares = model.Contributions(samples[0].features).value();
  double sum = 0;
  for (const double share : shares) sum += share;
  const std::vector<double> others = model.Contributions(samples[1].features).value();
  for (const double share : others) sum -= share;
  const auto corrections = Predict(model, {samples[0], samples[1]}, "task0");
  EXPECT_NEAR(sum, std::log(corrections[0].factor / corrections[1].factor), 1e-4);
}

size_t NumThreads() {
  const auto threads = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

// A search's process may take little address space, however many processors the server has.
TEST(XgboostModelTest, NothingStartsAThread) {
  XgboostModel model;
  void* const openmp = dlopen("libgomp.so.1", RTLD_NOW);
  ASSERT_NE(openmp, nullptr);
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(openmp, "omp_set_num_threads"));
  const auto most = reinterpret_cast<int (*)()>(dlsym(openmp, "omp_get_max_threads"));
  const int of_others = most();
  set(6);
  const size_t before = NumThreads();
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 20, 1))).ok());
  ASSERT_GT(model.metrics().trees, 0);
  XgboostModel loaded;
  ASSERT_TRUE(loaded.Load(model.Save().value()).ok());
  Predict(loaded, MakeSamples(1, 20, 2), "task0");
  EXPECT_EQ(NumThreads(), before);
  EXPECT_EQ(most(), 6) << "kernels of the same process have their threads";
  set(of_others);
}

TEST(XgboostModelTest, DamagedBytesAreRefused) {
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 20, 1))).ok());
  const std::string bytes = *model.Save();
  EXPECT_THAT(std::string(XgboostModel().Load("PK\3\4").message()), HasSubstr("not a cost model"));
  EXPECT_THAT(std::string(XgboostModel().Load("").message()), HasSubstr("not a cost model"));
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    if (i % 2 == 0)
      damaged.resize(static_cast<size_t>(rng.Below(static_cast<int>(bytes.size()))));
    else
      damaged[static_cast<size_t>(rng.Below(static_cast<int>(bytes.size())))] ^= 1 << rng.Below(8);
    EXPECT_EQ(XgboostModel().Load(damaged).code(), absl::StatusCode::kInvalidArgument);
  }
}

// With a right digest, which anybody can make.
TEST(XgboostModelTest, ACorrectionThatIsNoNumberIsRefused) {
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 20, 1))).ok());
  std::string body = Unseal("mycc-xgboost-3", *model.Save()).value();
  const double none = std::nan("");
  std::memcpy(&body[sizeof(int32_t) + sizeof(uint32_t)], &none, sizeof(none));  // the mean of all tasks
  const absl::Status status = XgboostModel().Load(Seal("mycc-xgboost-3", body));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no number"));
}

// Nor are factors and shares that make times which are no numbers any more.
TEST(XgboostModelTest, ACorrectionWithoutBoundsIsRefused) {
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 20, 1))).ok());
  const std::string sound = Unseal("mycc-xgboost-3", *model.Save()).value();
  const size_t mean = sizeof(int32_t) + sizeof(uint32_t),
               share = mean + sizeof(double) + 4 * sizeof(int32_t),  // behind the counts of samples
      rows = share + sizeof(double) + 1, metrics = sizeof(int32_t) + 3 * sizeof(double),
               group = rows + 2 * metrics + 1 + 2 * sizeof(uint64_t) + std::string("task0").size();
  const auto refusal_with = [&](size_t at, double value) {
    std::string body = sound;
    std::memcpy(&body[at], &value, sizeof(value));
    return std::string(XgboostModel().Load(Seal("mycc-xgboost-3", body)).message());
  };
  EXPECT_THAT(refusal_with(mean, 1e300), HasSubstr("expected a logarithm of -50 to 50"));
  EXPECT_THAT(refusal_with(group, -1e300), HasSubstr("expected a logarithm of -50 to 50"));
  EXPECT_EQ(refusal_with(group, 1), "");
  EXPECT_THAT(refusal_with(share, 1e300), HasSubstr("a share of 1e+300 of its correction; expected 0 to 1"));
  EXPECT_THAT(refusal_with(share, std::nan("")), HasSubstr("a share of nan"));
}

// The leaves are not looked through when a model is loaded.
TEST(XgboostModelTest, TreesThatSayNoNumberCorrectNothing) {
  XgboostModel model;
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 60, 1))).ok());
  ASSERT_GT(model.metrics().trees, 0);
  std::string body = Unseal("mycc-xgboost-3", *model.Save()).value();
  // Universal Binary JSON: `[$d#L`, eight bytes with the number of floats, the floats; most significant bytes
  // first. A leaf's value stands where other nodes have the bound of their condition.
  const std::string name = "split_conditions[$d#L";
  int arrays = 0;
  for (size_t at = body.find(name); at != std::string::npos; at = body.find(name, at), ++arrays) {
    at += name.size();
    uint64_t floats = 0;
    for (int i = 0; i < 8; ++i) floats = floats << 8 | static_cast<uint8_t>(body[at++]);
    for (; floats > 0; --floats, at += 4) body.replace(at, 4, std::string("\x7f\xc0\0\0", 4));
  }
  ASSERT_GT(arrays, 0);
  XgboostModel loaded;
  ASSERT_TRUE(loaded.Load(Seal("mycc-xgboost-3", body)).ok());
  for (const Correction& correction : Predict(loaded, MakeSamples(1, 20, 2), "task0")) {
    EXPECT_TRUE(std::isfinite(correction.factor)) << correction.factor;
    EXPECT_GT(correction.factor, 0);
  }
}

TEST(XgboostModelTest, ErrorsAreStatuses) {
  XgboostModel model;
  std::vector<Sample> samples = MakeSamples(4, 20, 1);
  samples[3].features.pop_back();
  EXPECT_EQ(model.Train(Pointers(samples)).code(), absl::StatusCode::kInvalidArgument);
  samples = MakeSamples(4, 20, 1);
  samples[5].analytic_seconds = std::numeric_limits<double>::quiet_NaN();
  absl::Status status = model.Train(Pointers(samples));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected to take nan s; expected positive, finite"));
  samples = MakeSamples(4, 20, 1);
  samples[5].features[0] = std::numeric_limits<float>::infinity();
  status = model.Train(Pointers(samples));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("xgboost: "));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("Stack trace")));
  ASSERT_TRUE(model.Train(Pointers(MakeSamples(4, 60, 1))).ok());
  const Features narrow(3, 0.0f);
  EXPECT_EQ(model.Predict({&narrow}, "task0").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mycc
