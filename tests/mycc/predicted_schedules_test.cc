// Schedules that a model chooses without a measurement: which, and which files are refused.
#include "mycc/predicted_schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/driver/compile.h"
#include "codegen/llvm/emit.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "command/times.h"
#include "mycc/finder.h"
#include "mycc/kernels.h"
#include "tuner/cost/appraisals.h"
#include "tuner/cost/model_file.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/search/sampler.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

Workload Product(int m, int n, int k) {
  const std::string text = absl::StrReplaceAll(
      "workload gemm(a: f32[M,K], b: const f32[K,N]) -> (c: f32[M,N]) {\n"
      "  c[i,j] = sum[k:K](a[i,k] * b[k,j])\n}\n",
      {{"M", absl::StrCat(m)}, {"N", absl::StrCat(n)}, {"K", absl::StrCat(k)}});
  return ParseWorkload(text, "test").value();
}

Target AnyCpu() { return ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value(); }

int64_t DecisionOf(const Trace& trace, const std::string& name) {
  for (const auto& [key, value] : trace.decisions) {
    if (key.ends_with(name)) return value;
  }
  return 0;
}

// A learner for a machine whose kernels take `penalty(trace)` times as long as the analytic model expects.
Learner Taught(const Workload& workload, const std::function<double(const Trace&)>& penalty) {
  const Workload canonical = Canonicalize(workload);
  const std::vector<Sketch> sketches = GenerateSketches(canonical, AnyCpu());
  const Sampler sampler(sketches);
  Rng rng(7);
  std::vector<Sample> samples;
  while (samples.size() < 200) {
    const Point point = sampler.Random(&rng);
    const absl::StatusOr<Trace> trace = sketches[point.sketch].instantiate(point.choice);
    if (!trace.ok()) continue;
    const absl::StatusOr<Appraisal> appraisal = Appraise(canonical, AnyCpu(), *trace);
    if (!appraisal.ok()) continue;
    samples.push_back({appraisal->features, appraisal->analytic_seconds,
                       appraisal->analytic_seconds * penalty(*trace), WorkloadHash(workload)});
  }
  Learner learner;
  EXPECT_TRUE(learner.Add(samples).ok());
  return learner;
}

class PredictedSchedulesTest : public ::testing::Test {
 protected:
  std::string Written(const Learner& learner, TargetKind device = TargetKind::kCpu) {
    return WrittenText(PrintModelFile({device, "cost-cpu", learner.Save().value()}));
  }
  std::string WrittenText(const std::string& contents) {
    std::string file = absl::StrCat(folder_->path(), "/", ++files_, ".model");
    EXPECT_TRUE(WriteFileAtomically(file, contents).ok());
    return file;
  }
  static std::string WhyRefused(const std::string& file) {
    return std::string(PredictedSchedules::Read(file, AnyCpu()).status().message());
  }

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
  int files_ = 0;
};

TEST_F(PredictedSchedulesTest, AModelWithoutLessonsFindsWhatTheAnalyticModelLikes) {
  const Workload canonical = Canonicalize(Product(256, 256, 256));
  const auto model = PredictedSchedules::Read(Written(Learner()), AnyCpu());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto best = (*model)->Best(canonical, {});
  ASSERT_TRUE(best.ok()) << best.status();
  ASSERT_GT(best->size(), 1u);
  EXPECT_LT((*best)[0].seconds, UnmeasuredSchedules(canonical, AnyCpu()).defaults()[0].seconds);
  EXPECT_LE((*best)[0].seconds, (*best)[1].seconds);
}

// Taught on one shape, asked about another.
TEST_F(PredictedSchedulesTest, FollowsWhatTheModelLearned) {
  const auto rows = [](const Trace& trace) { return DecisionOf(trace, ".mr"); };
  const auto best_rows = [&](const Learner& learner) {
    auto model = PredictedSchedules::Read(Written(learner), AnyCpu());
    return rows(model.value()->Best(Canonicalize(Product(256, 256, 192)), {}).value()[0].trace);
  };
  const int64_t plain = best_rows(Learner());
  const Learner taught =
      Taught(Product(256, 256, 256), [&](const Trace& trace) { return rows(trace) == plain ? 64.0 : 1.0; });
  EXPECT_NE(best_rows(taught), plain);
}

// Candidates rank by their odds and the model's doubt as well; people are told the time.
TEST_F(PredictedSchedulesTest, TheSecondsAreTheModelsOwn) {
  const Workload canonical = Canonicalize(Product(256, 256, 192));
  Learner taught = Taught(Product(256, 256, 256), [](const Trace& trace) {
    return 1 + static_cast<double>(DecisionOf(trace, ".mr") * DecisionOf(trace, ".kc") % 7);
  });
  const std::string file = Written(taught);
  const auto best = PredictedSchedules::Read(file, AnyCpu()).value()->Best(canonical, {}).value();
  Learner loaded;
  ASSERT_TRUE(loaded.Load(taught.Save().value()).ok());
  ScheduleScorer scorer(canonical, AnyCpu(), WorkloadHash(canonical), &loaded);
  bool has_doubts = false;
  for (const ScoredSchedule& schedule : best) {
    const Prediction prediction = scorer.Score({&schedule.trace})[0].value();
    EXPECT_DOUBLE_EQ(schedule.seconds, prediction.seconds);
    has_doubts |= prediction.log_spread > 0.01;
  }
  EXPECT_TRUE(has_doubts);
}

TEST_F(PredictedSchedulesTest, BeginsWithNearTraces) {
  const Workload canonical = Canonicalize(Product(256, 256, 256));
  auto model = PredictedSchedules::Read(Written(Learner()), AnyCpu()).value();
  const ScoredSchedule best = model->Best(canonical, {}).value()[0];
  EXPECT_LE(model->Best(canonical, {best.trace}).value()[0].seconds, best.seconds);
}

TEST_F(PredictedSchedulesTest, TheFinderSaysPredictedAndMakesTheSameCodeAgain) {
  const std::string file = Written(Learner());
  const auto find = [&](const TuningLog* log) {
    auto model = PredictedSchedules::Read(file, AnyCpu()).value();
    return ScheduleFinder(log, AnyCpu(), KernelUse::kAlone, model.get()).Find(Product(64, 96, 128)).value();
  };
  const Found found = find(nullptr);
  EXPECT_EQ(found.kernel.reason, Reason::kPredicted);
  EXPECT_FALSE(found.kernel.expected_seconds.has_value()) << "nothing was measured";
  ASSERT_TRUE(found.kernel.predicted_seconds.has_value());
  EXPECT_THAT(found.why, HasSubstr("predicted " + FormatSeconds(*found.kernel.predicted_seconds) + " by"));
  EXPECT_THAT(found.why, HasSubstr(absl::StrCat(" by model `cost-cpu` of ", file,
                                                " (another class than this target's, `cost-")));
  EXPECT_THAT(found.why, HasSubstr("`), which has no trees, not measured"));
  const Found again = find(nullptr);
  EXPECT_EQ(again.why, found.why);
  EXPECT_EQ(PrintTrace(again.kernel.trace), PrintTrace(found.kernel.trace));
  EXPECT_EQ(CodeDigest(again.kernel.lowered, AnyCpu(), LlvmToolchain()),
            CodeDigest(found.kernel.lowered, AnyCpu(), LlvmToolchain()));
}

TEST_F(PredictedSchedulesTest, AModelWithoutTreesSaysSo) {
  const std::string empty = Written(Learner());
  const auto untaught = PredictedSchedules::Read(empty, AnyCpu()).value();
  EXPECT_EQ(
      untaught->warning(),
      absl::StrCat(empty,
                   ": the model has no trees (0 valid candidates taught it nothing that the analytic model "
                   "lacks), so the analytic model alone chooses; expected one of more measured "
                   "candidates: `mycc-tune log model show` says what each has learned"));
  const Learner taught = Taught(Product(256, 256, 256), [](const Trace& trace) {
    return 1 + static_cast<double>(DecisionOf(trace, ".mr"));
  });
  const auto learned = PredictedSchedules::Read(Written(taught), AnyCpu()).value();
  EXPECT_EQ(learned->warning(), "");
  EXPECT_THAT(learned->name(), ::testing::Not(HasSubstr("trees")));
}

TEST_F(PredictedSchedulesTest, ResolvedKernelsCarryTheWarning) {
  const std::string source = absl::StrCat(folder_->path(), "/scale.te");
  ASSERT_TRUE(
      WriteFileAtomically(source, "workload scale(x: f32[64]) -> (y: f32[64]) { y[i] = x[i] * 2.0 }\n").ok());
  KernelSource options{.model = {.file = source}, .target = PrintTarget(AnyCpu())};
  EXPECT_THAT(ResolveKernels(options)->warnings, ::testing::IsEmpty());
  options.cost_model = Written(Learner());
  EXPECT_THAT(ResolveKernels(options)->warnings, ::testing::ElementsAre(HasSubstr("has no trees")));
}

TEST_F(PredictedSchedulesTest, RefusesWhatIsNoModelForTheTarget) {
  EXPECT_THAT(WhyRefused(folder_->path() + "/none"), HasSubstr("/none"));
  EXPECT_THAT(WhyRefused(WrittenText("workload gemm")),
              HasSubstr("1.model: this is no cost model; expected a file of `mycc-tune log model export`"));
  EXPECT_THAT(WhyRefused(WrittenText("mycc-model 9 cpu cost-cpu\n")),
              HasSubstr("a cost model of format 9; expected 1"));
  EXPECT_THAT(WhyRefused(Written(Learner(), TargetKind::kCuda)),
              HasSubstr("the model is for GPUs; expected one for CPUs"));
  std::string damaged = PrintModelFile({TargetKind::kCpu, "cost-cpu", Learner().Save().value()});
  damaged.back() ^= 1;
  EXPECT_THAT(WhyRefused(WrittenText(damaged)), HasSubstr("damaged"));
}

TEST(ModelFileTest, ReadsWhatItWrote) {
  for (const TargetKind device : {TargetKind::kCpu, TargetKind::kCuda}) {
    const ModelFile file{device, "sm_90a", std::string("\n\0x", 3)};
    const auto read = ParseModelFile(PrintModelFile(file));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, file);
  }
  for (const std::string text : {"", "mycc-model", "mycc-model 1 cpu\n", "mycc-model 1 tpu kind\n"})
    EXPECT_FALSE(ParseModelFile(text).ok()) << text;
}

}  // namespace
}  // namespace mycc
