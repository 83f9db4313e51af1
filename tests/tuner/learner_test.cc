// The cost model of a job: when it is trained, and that a resumed job continues with the same model.
#include "tuner/cost/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/samples.h"
#include "tuner/cost/bytes.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// The rows are as wide as those of loaded samples must be.
std::vector<Sample> WideSamples(int groups, int per_group, uint64_t seed) {
  return MakeSamples(groups, per_group, seed, FunctionFeatureSlots().size());
}

std::vector<Sample> InGroup(const std::string& group, std::vector<Sample> samples) {
  for (Sample& sample : samples) sample.group = group;
  return samples;
}

// A generation of a search.
std::vector<Sample> Generation(const std::string& group, uint64_t seed) {
  return InGroup(group, MakeSamples(1, 16, seed));
}

std::string SavedSamples(const std::vector<Sample>& samples) {
  Learner learner;
  EXPECT_TRUE(learner.Add(samples).ok());
  return learner.Save().value();
}

uint64_t VersionFor(Learner* learner, const std::string& group) {
  EXPECT_TRUE(learner->Update(group).ok());
  return learner->version();
}

std::vector<double> Factors(const Learner& learner, const std::vector<Sample>& samples,
                            const std::string& group) {
  std::vector<const Features*> rows;
  for (const Sample& sample : samples) rows.push_back(&sample.features);
  const std::vector<Correction> corrections = learner.Predict(rows, group).value();
  std::vector<double> factors;
  for (const Correction& correction : corrections) factors.push_back(correction.factor);
  return factors;
}

TEST(LearnerTest, ItsOwnSamplesCountWhateverWasLoaded) {
  Learner learner;
  ASSERT_TRUE(learner.Load(SavedSamples(WideSamples(8, 30, 1))).ok());
  EXPECT_EQ(VersionFor(&learner, "new"), 0u);
  std::vector<Sample> samples = InGroup("new", WideSamples(1, 32, 5));
  for (Sample& sample : samples) sample.seconds = *sample.seconds * 20;
  const std::vector<Sample> unseen(samples.begin() + 16, samples.end());
  samples.resize(16);
  ASSERT_TRUE(learner.Add(samples).ok());
  EXPECT_EQ(VersionFor(&learner, "new"), 16u);
  EXPECT_EQ(learner.metrics().samples, 16);
  double error = 0;
  const std::vector<double> factors = Factors(learner, unseen, "new");
  for (size_t i = 0; i < unseen.size(); ++i)
    error += std::log(factors[i] * unseen[i].analytic_seconds / *unseen[i].seconds) / 16;
  EXPECT_NEAR(std::exp(error), 1, 0.25);
}

TEST(LearnerTest, AFifthMoreTrainsAnew) {
  Learner learner;
  for (uint64_t g = 0; g < 6; ++g) ASSERT_TRUE(learner.Add(Generation("a", g)).ok());
  EXPECT_EQ(VersionFor(&learner, "a"), 96u);
  learner.Proposed(96);
  ASSERT_TRUE(learner.Add(Generation("a", 7)).ok());
  EXPECT_EQ(VersionFor(&learner, "a"), 96u) << "a sixth more";
  ASSERT_TRUE(learner.Add(Generation("a", 8)).ok());
  EXPECT_EQ(VersionFor(&learner, "a"), 128u);
}

TEST(LearnerTest, ATasksSamplesCountInAJobOfManyTasks) {
  Learner learner;
  for (uint64_t g = 0; g < 20; ++g) ASSERT_TRUE(learner.Add(Generation("many", g)).ok());
  ASSERT_TRUE(learner.Add(Generation("a", 30)).ok());
  EXPECT_EQ(VersionFor(&learner, "a"), 336u);
  learner.Proposed(336);
  ASSERT_TRUE(learner.Add(Generation("a", 31)).ok());
  EXPECT_EQ(VersionFor(&learner, "many"), 336u);
  EXPECT_EQ(VersionFor(&learner, "a"), 352u);
}

// The analytic times of one task err with a feature, those of the job's others do not: each model follows its
// own task.
TEST(LearnerTest, SamplesOfTheTaskAtHandWeighMoreThanTheOthers) {
  Learner learner;
  const auto of = [](const std::string& group, double power, uint64_t seed) {
    std::vector<Sample> samples = InGroup(group, MakeSamples(1, 40, seed));
    for (Sample& sample : samples)
      sample.seconds = sample.analytic_seconds * std::exp(power * sample.features[0]);
    return samples;
  };
  ASSERT_TRUE(learner.Add(of("a", 1.5, 1)).ok());
  for (uint64_t g = 2; g < 5; ++g) ASSERT_TRUE(learner.Add(of("b", 0, g)).ok());
  const auto slope = [&](const std::string& group) {
    EXPECT_TRUE(learner.Update(group).ok());
    std::vector<Sample> low = MakeSamples(1, 1, 9), high = low;
    low[0].features[0] = 0.1f;
    high[0].features[0] = 0.9f;
    return std::log(Factors(learner, high, group)[0] / Factors(learner, low, group)[0]) / 0.8;
  };
  const double of_a = slope("a"), of_b = slope("b");
  EXPECT_GT(of_a, of_b + 0.1);
  EXPECT_LT(std::abs(of_b), 0.25);
  const std::vector<Sample> asked = MakeSamples(1, 1, 9);
  EXPECT_EQ(learner.Predict({&asked[0].features}, "a").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// A job of one task does not push the samples of all others out.
TEST(LearnerTest, ALongJobLeavesTheSamplesOfOthers) {
  Learner learner;
  ASSERT_TRUE(learner.Add(InGroup("small", WideSamples(1, 20, 1))).ok());
  ASSERT_TRUE(learner.Add(InGroup("large", WideSamples(1, 700, 2))).ok());
  Learner next;
  ASSERT_TRUE(next.Load(learner.Save().value()).ok());
  EXPECT_EQ(next.num_samples(), 20 + 512);
}

// An Ask that proposes nothing may train a model too; it leaves no trace.
TEST(LearnerTest, ResumedLearnersGoOnWithTheSameModel) {
  const std::string loaded = SavedSamples(WideSamples(2, 16, 1));
  const std::vector<Sample> asked = WideSamples(1, 40, 77);
  const char* const tasks[] = {"a", "b", "a", "a", "b", "b", "a", "b"};
  const auto generation = [&](uint64_t round) { return InGroup(tasks[round], WideSamples(1, 16, round)); };
  Learner learner;
  ASSERT_TRUE(learner.Load(loaded).ok());
  std::vector<uint64_t> versions;
  for (uint64_t round = 0; round < std::size(tasks); ++round) {
    ASSERT_TRUE(learner.Update("b").ok());
    ASSERT_TRUE(learner.Update(tasks[round]).ok());
    versions.push_back(learner.version());

    Learner resumed;
    ASSERT_TRUE(resumed.Load(loaded).ok());
    for (uint64_t g = 0; g < round; ++g) {
      resumed.Proposed(versions[g]);
      ASSERT_TRUE(resumed.Add(generation(g)).ok());
    }
    ASSERT_TRUE(resumed.Update(tasks[round]).ok());
    EXPECT_EQ(resumed.version(), learner.version()) << "round " << round;
    EXPECT_EQ(Factors(resumed, asked, tasks[round]), Factors(learner, asked, tasks[round]))
        << "round " << round;

    learner.Proposed(learner.version());
    ASSERT_TRUE(learner.Add(generation(round)).ok());
  }
  EXPECT_GE(versions.back(), 96u);
}

// Such a version can only come from a damaged log, or one whose model is gone.
TEST(LearnerTest, AVersionOfMoreSamplesThanThereAreCountsAsAll) {
  Learner learner;
  ASSERT_TRUE(learner.Add(Generation("a", 1)).ok());
  learner.Proposed(1000);
  EXPECT_EQ(VersionFor(&learner, "a"), 16u);
}

// A digest tells damage, not what others write: such bytes come in a file of another's model.
TEST(LearnerTest, BytesThatNoTrainingWritesAreRefused) {
  const auto learner_of = [](const XgboostModel& model, const std::vector<Sample>& samples,
                             uint64_t unseen = 0) {
    ByteWriter body;
    body.Put<int32_t>(kFeatureVersion);
    body.Put(static_cast<uint32_t>(FunctionFeatureSlots().size()));
    body.Put<uint64_t>(samples.size());
    for (const Sample& sample : samples) {
      body.PutString(sample.group);
      body.Put(sample.analytic_seconds);
      body.Put(sample.seconds.value_or(0));
      for (const float feature : sample.features) body.Put(feature);
    }
    body.Put(unseen);
    body.PutString(model.Save().value());
    return Seal("mycc-learner-3", body.Take());
  };
  const auto trained = [](const std::vector<Sample>& samples) {
    std::vector<const Sample*> rows;
    for (const Sample& sample : samples) rows.push_back(&sample);
    XgboostModel model;
    EXPECT_TRUE(model.Train(rows).ok());
    return model;
  };
  const auto refusal = [](const std::string& bytes) {
    Learner learner;
    const absl::Status status = learner.Load(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(learner.num_samples(), 0);
    return std::string(status.message());
  };
  const std::vector<Sample> samples = WideSamples(4, 20, 1);
  const XgboostModel sound = trained(samples);
  ASSERT_TRUE(Learner().Load(learner_of(sound, samples)).ok());

  EXPECT_THAT(refusal(learner_of(trained(MakeSamples(4, 20, 1)), {})), HasSubstr("trained on 10 features"));
  // The product of such a number and five is a small one.
  EXPECT_THAT(refusal(learner_of(sound, samples, 0x3333333333333334)), HasSubstr("of 80 samples"));
  std::vector<Sample> spoiled = samples;
  spoiled[3].analytic_seconds = 0;
  EXPECT_THAT(refusal(learner_of(sound, spoiled)), HasSubstr("a sample of task task0"));
  spoiled = samples;
  spoiled[3].seconds = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(learner_of(sound, spoiled)), HasSubstr("without a finite time"));
  spoiled = samples;
  spoiled[3].features[7] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal(learner_of(sound, spoiled)), HasSubstr("without a finite time or feature"));
}

ModelConfig SmallModel() { return {.max_trees = 8, .members = 1}; }

std::vector<double> FactorsOf(const XgboostModel& model, const std::vector<Sample>& samples,
                              const std::string& group) {
  std::vector<double> factors;
  for (const Sample& sample : samples)
    factors.push_back(model.Predict({&sample.features}, group).value()[0].factor);
  return factors;
}

// A task of 20,000 trials: the memory of its samples does not grow, and each training sees what it always
// saw.
TEST(LearnerTest, OfALongTaskItKeepsWhatATrainingSees) {
  Learner learner(SmallModel());
  std::vector<Sample> all;
  const std::vector<Sample> asked = MakeSamples(1, 8, 99);
  for (uint64_t g = 0; g < 1250; ++g) {
    // Some of another task between them, which must not be forgotten.
    const std::string group = g % 40 == 7 ? "other" : "long";
    const std::vector<Sample> samples = Generation(group, g);
    all.insert(all.end(), samples.begin(), samples.end());
    ASSERT_TRUE(learner.Add(samples).ok());
    EXPECT_LE(learner.num_samples(), 2 * 2000);
    if (g % 200 != 199) continue;
    const uint64_t version = VersionFor(&learner, "long");
    XgboostModel expected(SmallModel());
    std::vector<const Sample*> trained;
    size_t of_task = 0, of_others = 0;
    for (size_t i = version; i-- > 0;) {
      if (++(all[i].group == "long" ? of_task : of_others) <= 1000) trained.push_back(&all[i]);
    }
    std::ranges::reverse(trained);
    ASSERT_TRUE(expected.Train(trained, "long").ok());
    EXPECT_EQ(Factors(learner, asked, "long"), FactorsOf(expected, asked, "long")) << version;
    // Some versions serve for a while, and are asked for again after more samples.
    if (g % 400 == 199) learner.Proposed(version);
  }
  EXPECT_EQ(all.size(), 20000u);
}

// A version that an earlier life of the job proposed with, far behind the samples that are told at once.
TEST(LearnerTest, ARestartFindsTheSamplesOfItsVersion) {
  Learner grown(SmallModel()), resumed(SmallModel());
  resumed.Proposed(2400);
  for (uint64_t g = 0; g < 175; ++g) {
    ASSERT_TRUE(grown.Add(Generation("a", g)).ok());
    ASSERT_TRUE(resumed.Add(Generation("a", g)).ok());
    if (g != 149) continue;
    EXPECT_EQ(VersionFor(&grown, "a"), 2400u);
    grown.Proposed(2400);
  }
  EXPECT_EQ(VersionFor(&grown, "a"), 2400u) << "a sixth more";
  EXPECT_EQ(VersionFor(&resumed, "a"), 2400u);
  const std::vector<Sample> asked = MakeSamples(1, 8, 99);
  EXPECT_EQ(Factors(resumed, asked, "a"), Factors(grown, asked, "a"));
  EXPECT_EQ(resumed.Save().value(), grown.Save().value());
}

// A job of 500 tasks: the models of those that were not searched lately are made again, and are the same.
TEST(LearnerTest, OfManyTasksItKeepsTheLatestModels) {
  Learner learner(SmallModel()), other(SmallModel());
  const std::vector<Sample> asked = MakeSamples(1, 4, 99);
  std::map<int, std::vector<double>> first;
  for (int t = 0; t < 500; ++t) {
    ASSERT_TRUE(learner.Add(Generation(absl::StrCat("task ", t), static_cast<uint64_t>(t))).ok());
    ASSERT_TRUE(other.Add(Generation(absl::StrCat("task ", t), static_cast<uint64_t>(t))).ok());
  }
  for (int t = 0; t < 500; t += 5) {
    const std::string group = absl::StrCat("task ", t);
    ASSERT_TRUE(learner.Update(group).ok());
    first[t] = Factors(learner, asked, group);
    EXPECT_LE(learner.num_models(), 32);
  }
  for (const int t : {0, 250, 495}) {
    const std::string group = absl::StrCat("task ", t);
    ASSERT_TRUE(learner.Update(group).ok());
    EXPECT_EQ(Factors(learner, asked, group), first[t]) << group;
    ASSERT_TRUE(other.Update(group).ok());
    EXPECT_EQ(Factors(other, asked, group), first[t]) << group << ", in another order";
  }
  EXPECT_EQ(learner.num_models(), 32);
}

TEST(LearnerTest, SavedSamplesTeachTheNextJob) {
  Learner first, second, damaged;
  ASSERT_TRUE(first.Add(WideSamples(3, 16, 1)).ok());
  const std::string bytes = *first.Save();
  ASSERT_TRUE(second.Load(bytes).ok());
  EXPECT_EQ(second.num_samples(), 48);
  EXPECT_EQ(*second.Save(), bytes);
  ASSERT_TRUE(second.Add(WideSamples(1, 16, 9)).ok());
  EXPECT_EQ(second.num_samples(), 64);
  // A job's bytes do not depend on how it was taught: its own samples are saved as they were measured.
  std::vector<Sample> all = WideSamples(3, 16, 1);
  for (const Sample& sample : WideSamples(1, 16, 9)) all.push_back(sample);
  EXPECT_EQ(*second.Save(), SavedSamples(all));
  EXPECT_EQ(damaged.Load(bytes.substr(0, bytes.size() / 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(damaged.num_samples(), 0);
}

// A training on thousands of samples takes seconds, which no job should end with.
TEST(LearnerTest, AFifthMoreTrainsTheModelOfLaterJobsAnew) {
  std::vector<Sample> all = WideSamples(5, 16, 1);
  std::string bytes = SavedSamples(all);
  const auto add = [&](uint64_t seed, int count) {
    Learner learner;
    ASSERT_TRUE(learner.Load(bytes).ok());
    const std::vector<Sample> samples = InGroup(absl::StrCat("later ", seed), WideSamples(1, count, seed));
    ASSERT_TRUE(learner.Add(samples).ok());
    all.insert(all.end(), samples.begin(), samples.end());
    bytes = learner.Save().value();
  };
  const auto saved = [&] {
    Learner learner;
    EXPECT_TRUE(learner.Load(bytes).ok());
    EXPECT_EQ(learner.num_samples(), static_cast<int>(all.size()));
    return std::make_pair(learner.earlier().metrics().samples, learner.num_unseen());
  };
  add(7, 8);
  EXPECT_EQ(saved(), std::make_pair(80, uint64_t{8}));
  add(8, 7);
  EXPECT_EQ(saved(), std::make_pair(80, uint64_t{15}));
  add(9, 1);
  EXPECT_EQ(saved(), std::make_pair(96, uint64_t{0}));
  EXPECT_EQ(bytes, SavedSamples(all));
}

// A class of devices without a model begins with that of the nearest one, and its first job makes its own.
TEST(LearnerTest, AModelOfAnotherClassIsTrainedAnew) {
  std::vector<Sample> all = WideSamples(5, 16, 1);
  Learner learner;
  ASSERT_TRUE(learner.Load(SavedSamples(all), /*of_another_class=*/true).ok());
  const std::vector<Sample> samples = InGroup("own", WideSamples(1, 4, 2));
  ASSERT_TRUE(learner.Add(samples).ok());
  all.insert(all.end(), samples.begin(), samples.end());
  EXPECT_EQ(learner.Save().value(), SavedSamples(all));
}

// A model keeps 512 samples of each task. The fifth is one of the kept samples, not of all that it has seen.
TEST(LearnerTest, AFifthOfTheSamplesThatAreLeftTrainsAnew) {
  Learner first(SmallModel()), second(SmallModel());
  ASSERT_TRUE(first.Add(InGroup("long", WideSamples(1, 1000, 1))).ok());
  ASSERT_TRUE(second.Load(first.Save().value()).ok());
  ASSERT_EQ(second.num_samples(), 512);
  ASSERT_TRUE(second.Add(InGroup("other", WideSamples(1, 103, 2))).ok());
  Learner third(SmallModel());
  ASSERT_TRUE(third.Load(second.Save().value()).ok());
  EXPECT_EQ(third.num_unseen(), 0u);
  EXPECT_EQ(third.earlier().metrics().samples, 615);
}

// Such bytes are in the logs of earlier builds.
TEST(LearnerTest, BytesOfTheFormatBeforeAreRead) {
  const std::vector<Sample> samples = WideSamples(5, 16, 1);
  const std::string bytes = SavedSamples(samples);
  std::string body = Unseal("mycc-learner-3", bytes).value();
  Learner learner;
  ASSERT_TRUE(learner.Load(bytes).ok());
  const std::string model = learner.earlier().Save().value();
  // The count of samples after the training stands before the model, which its length precedes.
  body.erase(body.size() - model.size() - 2 * sizeof(uint64_t), sizeof(uint64_t));
  Learner before;
  ASSERT_TRUE(before.Load(Seal("mycc-learner-2", body)).ok());
  EXPECT_EQ(before.Save().value(), bytes);
}

}  // namespace
}  // namespace mycc
