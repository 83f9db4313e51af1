// Finding schedules in a log made for the test, for each reason: hit, stale, near, miss.
#include "mycc/finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/temporary_folder.h"
#include "codegen/driver/compile.h"
#include "codegen/llvm/emit.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "db/constants_store.h"
#include "db/foreign_table.h"
#include "mycc/spot_check.h"
#include "mycc/unmeasured_schedules.h"
#include "proto/device_constants.h"
#include "tests/target/told_host.h"
#include "tuner/cost/machine_constants.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

Workload Gemm(int m, int n, int k) {
  const std::string text = absl::StrReplaceAll(
      "workload gemm(a: f32[M,K], b: const f32[K,N]) -> (c: f32[M,N]) {\n"
      "  c[i,j] = sum[k:K](a[i,k] * b[k,j])\n}\n",
      {{"M", absl::StrCat(m)}, {"N", absl::StrCat(n)}, {"K", absl::StrCat(k)}});
  return ParseWorkload(text, "test").value();
}

// Code for it runs on every x86-64 processor, so that look-up answers and checks the same on all of them.
Target PlainTarget() { return ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value(); }

// A CPU with instructions that the plain one, and a Haswell, lack.
Target ForeignTarget() { return ParseTarget("sapphirerapids threads=2").value(); }

class FinderTest : public ::testing::Test {
 protected:
  FinderTest() { log_ = TuningLog::Open(folder_->path() + "/log.db", OpenMode::kCreate).value(); }

  Found Find(const Workload& workload) { return ScheduleFinder(log_.get(), target_).Find(workload).value(); }

  // The record of a verified run of `trace`; the code digest is this build's unless given.
  int64_t Record(const Workload& workload, const Target& target, const Trace& trace, double seconds,
                 const std::string& digest = "", v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM) {
    return log_->Append({RecordOf(workload, target, trace, seconds, digest, protocol)}).value()[0].id;
  }
  v1::Record RecordOf(const Workload& workload, const Target& target, const Trace& trace, double seconds,
                      const std::string& digest = "",
                      v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM) {
    v1::Record record;
    record.set_trial(absl::StrCat("j0123456789abcdef/0/0/", ++trials_));
    record.set_workload(CanonicalText(workload));
    record.set_workload_hash(WorkloadHash(workload));
    record.set_shape_erased_hash(ShapeErasedHash(workload));
    record.set_target(PrintTarget(target));
    record.set_trace(PrintTrace(trace));
    v1::MeasureResult* result = record.mutable_result();
    result->set_status(v1::MEASURE_STATUS_OK);
    result->mutable_verification()->set_passed(true);
    result->mutable_timing()->set_protocol(protocol);
    result->mutable_timing()->set_timer_version(1);
    result->mutable_timing()->set_seconds(seconds);
    result->set_code_digest(digest.empty() ? Digest(workload, target, trace) : digest);
    return record;
  }

  static std::string Digest(const Workload& workload, const Target& target, const Trace& trace) {
    return CodeDigest(CompileKernel(workload, target, trace).value().lowered, target, LlvmToolchain());
  }

  Trace DefaultTrace(const Workload& workload) const {
    return UnmeasuredSchedules(Canonicalize(workload), target_).defaults()[0].trace;
  }

  // The legal point of the first sketch that the analytic model likes best among a few: better than the
  // default.
  Trace Better(const Workload& workload) {
    const Workload canonical = Canonicalize(workload);
    const UnmeasuredSchedules unmeasured(canonical, target_);
    const ScoredSchedule& default_schedule = unmeasured.defaults()[0];
    const Sketch sketch = GenerateSketches(canonical, target_)[0];
    for (size_t d = 0; d < sketch.space.decisions.size(); ++d) {
      for (size_t c = 0; c < sketch.space.decisions[d].choices.size(); ++c) {
        Choice choice = sketch.default_choice;
        choice[d] = static_cast<int>(c);
        if (!sketch.space.Legal(choice)) continue;
        const auto trace = sketch.instantiate(choice);
        if (!trace.ok()) continue;
        const auto scored = unmeasured.Refit(*trace);
        if (scored.ok() && scored->seconds < default_schedule.seconds) return scored->trace;
      }
    }
    ADD_FAILURE() << "no neighbour of the default is predicted to be faster";
    return default_schedule.trace;
  }

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
  std::unique_ptr<TuningLog> log_;
  const Target target_ = PlainTarget();
  int trials_ = 0;
};

TEST_F(FinderTest, NoLogMisses) {
  const auto found = ScheduleFinder(nullptr, target_).Find(Gemm(16, 16, 16));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->kernel.reason, Reason::kMiss);
  EXPECT_EQ(found->why, "no tuning log was named");
}

TEST_F(FinderTest, EmptyLogMisses) {
  const Found found = Find(Gemm(16, 16, 16));
  EXPECT_EQ(found.kernel.reason, Reason::kMiss);
  EXPECT_EQ(found.why, "the log has no record of this computation, at any shape or target");
  EXPECT_FALSE(found.kernel.record.has_value());
}

// They are for searches alone.
TEST_F(FinderTest, TheConstantsOfADeviceChangeNoSchedule) {
  const auto found = [this](int size) {
    const Found chosen = Find(Gemm(size, 2 * size, 64));
    return absl::StrCat(PrintTrace(chosen.kernel.trace), chosen.why);
  };
  std::vector<std::string> before;
  for (const int size : {8, 64, 300, 1024}) before.push_back(found(size));
  StoredConstants constants;
  constants.device = "cpu";
  constants.target = PrintTarget(target_);
  constants.constants.set_version(kConstantsVersion);
  // A machine that has fast arithmetic, and slow memory and threads.
  const std::map<std::string, double> values = {
      {kThreadsConstant, 2},    {kClockConstant, 6e9}, {kPeakOfThread, 1e11},
      {kPeakOfAll, 1.1e11},     {kL2OfThread, 1.9e10}, {kL3OfThread, 7.6e9},
      {kMemoryOfThread, 3.8e9}, {kMemoryOfAll, 3.9e9}, {kLaunchTime, 1.8e-5}};
  constants.constants.mutable_values()->insert(values.begin(), values.end());
  ASSERT_TRUE(ConstantsStore(log_.get()).Save(constants).ok());
  EXPECT_NE(FiguresText(MeasuredMachine(target_, constants.constants)), FiguresText(Machine(target_)));
  size_t i = 0;
  for (const int size : {8, 64, 300, 1024}) EXPECT_EQ(found(size), before[i++]) << size;
}

TEST_F(FinderTest, SameKeyAndCodeHits) {
  const Workload gemm = Gemm(64, 64, 64);
  Record(gemm, target_, {}, 2e-3);
  const int64_t best = Record(gemm, target_, DefaultTrace(gemm), 1e-3);
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kHit);
  EXPECT_EQ(found.kernel.record, best);
  EXPECT_EQ(found.kernel.expected_seconds, 1e-3);
  EXPECT_EQ(found.kernel.workload.name, "gemm");
}

// Primitives have been renamed; a log of an earlier version still hits.
TEST_F(FinderTest, FormerNamesOfPrimitivesHit) {
  const Workload copy =
      ParseWorkload("workload copy(x: f32[64,256]) -> (y: f32[64,256]) { y[i,j] = x[i,j] * 2.0 }", "test")
          .value();
  const std::string former = "v1\nsplit(t1.a1, [8])\nbypass(t1.a0)\nbind(t1.a1.1, vector)\n";
  v1::Record record = RecordOf(copy, target_, ParseTrace(former).value(), 1e-3);
  EXPECT_THAT(record.trace(), HasSubstr("nontemporal(t1.a0)"));
  record.set_trace(former);
  ASSERT_TRUE(log_->Append({record}).ok());
  const Found found = Find(copy);
  EXPECT_EQ(found.kernel.reason, Reason::kHit) << found.why;
  EXPECT_THAT(PrintTrace(found.kernel.trace), HasSubstr("nontemporal(t1.a0)"));
}

TEST_F(FinderTest, NamesDoNotMatter) {
  Record(Gemm(16, 24, 8), target_, {}, 1e-3);
  const Workload renamed = ParseWorkload(
                               "workload product(p: f32[16,8], q: const f32[8,24]) -> (r: f32[16,24]) {\n"
                               "  r[x,y] = sum[z:8](p[x,z] * q[z,y])\n}\n",
                               "test")
                               .value();
  const Found found = Find(renamed);
  EXPECT_EQ(found.kernel.reason, Reason::kHit);
  EXPECT_EQ(found.kernel.workload.name, "product");
}

TEST_F(FinderTest, PinnedRecordHitsBeforeAFasterOne) {
  const Workload gemm = Gemm(64, 64, 64);
  const int64_t slow = Record(gemm, target_, {}, 2e-3);
  Record(gemm, target_, DefaultTrace(gemm), 1e-3);
  ASSERT_TRUE(log_->SetOverride(slow, OverrideKind::kPin, "it is what we trust").ok());
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.record, slow);
  EXPECT_THAT(found.why, HasSubstr("it is what we trust"));
}

// The default ranks by a final round that was held in a slow moment. A later job times it alone, beside a
// candidate that is slower, and is cancelled before a round of its own.
TEST_F(FinderTest, WhatItsJobFoundSlowerThanTheDefaultIsNotServed) {
  const Workload gemm = Gemm(64, 64, 64);
  const Trace by_default = DefaultTrace(gemm);
  v1::Record ranked = RecordOf(gemm, target_, by_default, 3.3e-3);
  ranked.mutable_result()->mutable_timing()->set_rank_seconds(3.3e-3);
  ASSERT_TRUE(log_->Append({ranked}).ok());
  std::vector<int64_t> ids;
  for (const auto& [trace, seconds, origin] :
       {std::tuple(by_default, 1.5e-3, "default"), std::tuple(Trace(), 2e-3, "mutation")}) {
    v1::Record record = RecordOf(gemm, target_, trace, seconds);
    record.mutable_provenance()->set_job("j00000000000000ff");
    record.mutable_provenance()->set_strategy(absl::StrCat("evolutionary/", origin));
    ids.push_back(log_->Append({record}).value()[0].id);
  }
  Found found = Find(gemm);
  EXPECT_EQ(found.kernel.record, ids[0]);
  EXPECT_EQ(found.kernel.expected_seconds, 1.5e-3);
  const auto top = log_->TopK({WorkloadHash(gemm), PrintTarget(target_)}, v1::TIMING_PROTOCOL_WARM, 5);
  ASSERT_EQ(top->size(), 2u) << "each trace once";
  EXPECT_EQ((*top)[1].id, ids[1]);
  // Found wrong since, it is not served either.
  v1::Record wrong = RecordOf(gemm, target_, by_default, 1);
  wrong.mutable_result()->set_status(v1::MEASURE_STATUS_WRONG_RESULT);
  wrong.mutable_result()->clear_timing();
  ASSERT_TRUE(log_->Append({wrong}).ok());
  EXPECT_EQ(Find(gemm).kernel.record, ids[1]);
}

TEST_F(FinderTest, OtherCodeIsStale) {
  const Workload gemm = Gemm(16, 16, 16);
  const int64_t id = Record(gemm, target_, {}, 1e-3, "0123456789abcdef");
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kStale);
  EXPECT_EQ(found.kernel.record, id);
  EXPECT_THAT(found.why, HasSubstr("differs from 01234567 that was measured; unverified"));
}

TEST_F(FinderTest, RecordThatNoLongerReplaysMisses) {
  const Workload gemm = Gemm(16, 16, 16);
  Trace trace;
  trace.steps.push_back({"split", {StepArg{std::string("nowhere")}, StepArg{StepArg::Ints{2, 8}}}});
  const int64_t id = Record(gemm, target_, trace, 1e-3, "0123456789abcdef");
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kMiss);
  EXPECT_THAT(found.why, HasSubstr(absl::StrCat("record ", id, " no longer replays: ")));
}

TEST_F(FinderTest, RecordThatNoLongerReplaysLeavesItsPlaceToTheNextBest) {
  const Workload gemm = Gemm(64, 64, 64);
  const int64_t second = Record(gemm, target_, DefaultTrace(gemm), 2e-3);
  Record(gemm, target_, {}, 3e-3);
  int64_t fastest = 0;
  for (int i = 0; i < 3; ++i) {
    Trace trace;
    trace.steps.push_back({"split", {StepArg{absl::StrCat("nowhere", i)}, StepArg{StepArg::Ints{2, 8}}}});
    const int64_t id = Record(gemm, target_, trace, 1e-4 * (3 - i), "0123456789abcdef");
    fastest = id;
  }
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kHit);
  EXPECT_EQ(found.kernel.record, second);
  EXPECT_EQ(found.kernel.expected_seconds, 2e-3);
  EXPECT_THAT(found.why, HasSubstr(absl::StrCat("same workload, target and code; the next best, as record ",
                                                fastest, " no longer replays: ")));
  EXPECT_THAT(found.why, HasSubstr(", and 2 more do not"));
}

TEST_F(FinderTest, ALogOfTheOtherProtocolAloneServes) {
  const Workload gemm = Gemm(16, 16, 16);
  const int64_t cold = Record(gemm, target_, {}, 1e-3, "", v1::TIMING_PROTOCOL_COLD);
  EXPECT_EQ(Find(gemm).kernel.record, cold);
  const int64_t warm = Record(gemm, target_, DefaultTrace(gemm), 2e-3);
  EXPECT_EQ(Find(gemm).kernel.record, warm) << "the usual one of a CPU";
}

TEST_F(FinderTest, AModelsKernelHasTheRecordThatWasTimedAsInAModel) {
  const Workload gemm = Gemm(16, 16, 16);
  const auto in_model = [&] {
    return ScheduleFinder(log_.get(), target_, KernelUse::kInModel).Find(gemm)->kernel.record;
  };
  const int64_t warm = Record(gemm, target_, {}, 1e-3);
  EXPECT_EQ(in_model(), warm) << "a log of the other protocol alone serves";
  const int64_t model = Record(gemm, target_, DefaultTrace(gemm), 2e-3, "", v1::TIMING_PROTOCOL_MODEL);
  EXPECT_EQ(in_model(), model);
  EXPECT_EQ(Find(gemm).kernel.record, warm) << "a kernel alone";
}

TEST_F(FinderTest, NearestShapeIsRefittedAndChecked) {
  // Only the decisions of a near record's trace are read, so that these stand for any that are good here.
  const Trace good = Better(Gemm(256, 256, 256));
  const int64_t far = Record(Gemm(16, 16, 16), target_, good, 1e-6, "0123456789abcdef");
  const int64_t near = Record(Gemm(256, 256, 192), target_, good, 1e-3, "0123456789abcdef");
  const Found found = Find(Gemm(256, 256, 256));
  ASSERT_EQ(found.kernel.reason, Reason::kNear) << found.why;
  EXPECT_EQ(found.kernel.record, near);
  EXPECT_NE(near, far);
  EXPECT_FALSE(found.kernel.expected_seconds.has_value());  // it is of another shape
  EXPECT_THAT(found.why, HasSubstr("same computation at [256,192] [192,256]"));
  EXPECT_THAT(found.why, HasSubstr("checked on random inputs"));
}

// A record of others serves nothing, however fast it was there.
TEST_F(FinderTest, ForeignRecordsWaitForReMeasuring) {
  const Workload gemm = Gemm(16, 16, 16);
  {
    Database* const database = log_->database();
    MutexLock lock(database->mutex());
    const int64_t signer = EnsureSigner(database, {"0123456789abcdef", "ann@host"}).value();
    ASSERT_TRUE(
        InsertForeign(database, RecordOf(gemm, target_, DefaultTrace(gemm), 1e-9), signer, 1).value());
  }
  const Found missed = Find(gemm);
  EXPECT_EQ(missed.kernel.reason, Reason::kMiss);
  EXPECT_FALSE(missed.kernel.record.has_value());
  EXPECT_THAT(missed.why, HasSubstr("; 1 foreign record waits for re-measuring: mycc-tune reverify"));
  Record(gemm, target_, DefaultTrace(gemm), 1e-3);
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kHit);
  EXPECT_EQ(found.kernel.expected_seconds, 1e-3) << "by what was measured here";
}

TEST_F(FinderTest, NearRecordThatIsNoBetterThanTheDefaultMisses) {
  const Workload near = Gemm(256, 256, 192);
  Record(near, target_, DefaultTrace(near), 1e-3);
  const Found found = Find(Gemm(256, 256, 256));
  EXPECT_EQ(found.kernel.reason, Reason::kMiss);
  EXPECT_THAT(found.why, HasSubstr("is predicted no faster than the default schedule"));
}

TEST_F(FinderTest, CompatibleTargetIsNear) {
  const Workload gemm = Gemm(256, 256, 256);
  Target smaller = target_;
  smaller.l2_bytes /= 2;
  const int64_t id = Record(gemm, smaller, Better(gemm), 1e-3);
  const Found found = Find(gemm);
  ASSERT_EQ(found.kernel.reason, Reason::kNear) << found.why;
  EXPECT_EQ(found.kernel.record, id);
  EXPECT_THAT(found.why, HasSubstr("same workload, tuned for `v1 cpu"));
}

TEST_F(FinderTest, IncompatibleTargetMissesAndSaysWhatDiffers) {
  const Workload gemm = Gemm(256, 256, 256);
  const int64_t id = Record(gemm, ForeignTarget(), {}, 1e-3);
  const Found found = Find(gemm);
  EXPECT_EQ(found.kernel.reason, Reason::kMiss);
  EXPECT_THAT(found.why, HasSubstr(absl::StrCat("record ", id, " is for `")));
}

TEST_F(FinderTest, HandWrittenTraceServesNoOtherShape) {
  Record(Gemm(256, 256, 192), target_, {}, 1e-9);
  const Found found = Find(Gemm(256, 256, 256));
  EXPECT_EQ(found.kernel.reason, Reason::kMiss);
  EXPECT_THAT(found.why, HasSubstr("its trace names no sketch"));
}

TEST_F(FinderTest, OtherComputationIsNoNeighbour) {
  Record(Gemm(16, 16, 16), target_, Better(Gemm(256, 256, 256)), 1e-3, "0123456789abcdef");
  const Workload other = ParseWorkload(
                             "workload f(a: f32[16,16], b: const f32[16,16]) -> (c: f32[16,16]) {\n"
                             "  c[i,j] = sum[k:16](a[i,k] + b[k,j])\n}\n",
                             "test")
                             .value();
  EXPECT_EQ(Find(other).why, "the log has no record of this computation, at any shape or target");
}

// The check that stands between an unverified schedule and its use can fail.
TEST(SpotCheckTest, WrongKernelIsFound) {
  const Target target = PlainTarget();
  KernelSpec kernel = CompileKernel(Gemm(16, 16, 16), target, {}).value();
  EXPECT_EQ(CheckOnRandomInputs(kernel, target).verdict, SpotCheck::kRight);
  // The same interface, another computation.
  kernel.workload = ParseWorkload(
                        "workload gemm(a: f32[16,16], b: const f32[16,16]) -> (c: f32[16,16]) {\n"
                        "  c[i,j] = sum[k:16](a[i,k] * b[k,j] * 1.001)\n}\n",
                        "test")
                        .value();
  const SpotCheck check = CheckOnRandomInputs(kernel, target);
  EXPECT_EQ(check.verdict, SpotCheck::kWrong);
  EXPECT_THAT(check.detail, HasSubstr("c: element 0 is "));
}

TEST(SpotCheckTest, ForeignTargetStaysUnchecked) {
  const ToldCpu haswell("haswell");
  const Target foreign = ForeignTarget();
  const SpotCheck check = CheckOnRandomInputs(CompileKernel(Gemm(16, 16, 16), foreign, {}).value(), foreign);
  EXPECT_EQ(check.verdict, SpotCheck::kUnchecked);
  EXPECT_THAT(check.detail, HasSubstr("unverified: code for sapphirerapids needs "));
}

// A GPU's defaults: a chain in one pass, each stage for itself, and what can always be lowered.
TEST(UnmeasuredSchedulesTest, SingleStagesFollowChains) {
  const Workload attention =
      ParseWorkload(
          R"(workload w(q: f16[2,200,64], k: f16[2,200,64], v: f16[2,200,64]) -> (o: f16[2,200,64]) {
  s[h,i,j]: f32[2,200,200] = sum[d:64](f32(q[h,i,d]) * f32(k[h,j,d]))
  m[h,i]: f32[2,200] = max[j:200](s[h,i,j])
  e[h,i,j]: f32[2,200,200] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[2,200] = sum[j:200](e[h,i,j])
  t[h,i,d]: f32[2,200,64] = sum[j:200](f32(f16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
})",
          "test")
          .value();
  const UnmeasuredSchedules unmeasured(Canonicalize(attention), ParseTarget("h200").value());
  const std::vector<ScoredSchedule>& defaults = unmeasured.defaults();
  ASSERT_GE(defaults.size(), 3u);
  EXPECT_THAT(defaults.front().trace.sketch, HasSubstr("streamed"));
  const ScoredSchedule& single = defaults[defaults.size() - 2];
  EXPECT_THAT(single.trace.sketch, ::testing::AllOf(HasSubstr("row"), ::testing::Not(HasSubstr("streamed"))));
  EXPECT_TRUE(CompileScheduled(attention, ParseTarget("h200").value(), single.trace, single.function).ok());
  EXPECT_EQ(defaults.back().trace.sketch, "");
}

TEST(SpotCheckTest, AGpusKernelIsCheckedWhereThereIsOne) {
  const Target gpu = ParseTarget("b200").value();
  const Trace trace = UnmeasuredSchedules(Canonicalize(Gemm(16, 16, 16)), gpu).defaults().back().trace;
  const SpotCheck check = CheckOnRandomInputs(CompileKernel(Gemm(16, 16, 16), gpu, trace).value(), gpu);
  if (check.verdict == SpotCheck::kRight) GTEST_SKIP() << "this machine has one";
  EXPECT_EQ(check.verdict, SpotCheck::kUnchecked) << check.detail;
  EXPECT_THAT(check.detail, HasSubstr("unverified: "));
}

}  // namespace
}  // namespace mycc
