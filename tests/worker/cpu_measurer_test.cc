// Measuring real kernels on this machine's CPU, with real builder and runner processes.
#include "worker/cpu_measurer.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/ir/visit.h"
#include "codegen/workload/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/child.h"
#include "process/fork_server_main.h"
#include "process/host_lock.h"
#include "proto/device_constants.h"
#include "proto/proof.h"
#include "worker/builder.h"
#include "worker/child_main.h"
#include "worker/runner.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kDoubling[] =
    "workload doubling(x: f32[64000]) -> (y: f32[64000]) {\n  y[i] = x[i] * 2.0\n}\n";
constexpr char kPlain[] = "v1\n", kBlocked[] = "v1\nsplit(t1.a0, [640])\n",
               kVectors[] = "v1\nsplit(t1.a0, [8])\nbind(t1.a0.1, vector)\n",
               kNone[] = "v1\nsplit(t9.a0, [2])\n";

// The builder turns this trace into the naive schedule with its sum loops made parallel, which is a race.
constexpr char kRacy[] = "racy";
constexpr char kSums[] =
    "workload sums(x: f32[64,4000]) -> (y: f32[64]) {\n  y[i] = sum[k:4000](x[i,k])\n}\n";

// The builder turns this trace into the kernel of kRefined, which is wrong for zero and infinity.
constexpr char kEstimate[] = "estimate";
constexpr char kRoot[] = "workload root(x: f32[64000]) -> (y: f32[64000]) {\n  y[i] = rsqrt(x[i])\n}\n";
constexpr char kRefined[] =
    "workload root(x: f32[64000]) -> (y: f32[64000]) {\n"
    "  y[i] = rsqrt(x[i]) * (1.5 - 0.5 * x[i] * rsqrt(x[i]) * rsqrt(x[i]))\n}\n";

// The builder turns these traces into the naive schedule with its results a little, and far, behind their
// places.
constexpr char kBeside[] = "beside", kFarAway[] = "far away";

// The builder adds the traces that it builds to the file that this variable names.
constexpr char kCountedBuilds[] = "MYCC_TEST_COUNTED_BUILDS";

class CpuMeasurerTest : public ::testing::Test {
 protected:
  std::vector<v1::MeasureResult> Measure(const std::vector<std::string>& traces, v1::TimingProtocol protocol,
                                         double best_seconds = 0, const std::string& workload = kDoubling) {
    v1::Assignment assignment;
    assignment.set_workload(workload);
    assignment.set_best_seconds(best_seconds);
    assignment.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2");
    assignment.set_trace(traces[0]);
    assignment.mutable_rivals()->Add(traces.begin() + 1, traces.end());
    assignment.set_protocol(protocol);
    assignment.set_seed(1);
    std::vector<v1::MeasureResult> measured;
    measurer_->Measure(
        {assignment}, [](const v1::LeaseId&) { return false; },
        [&measured](const v1::Assignment&, std::vector<v1::MeasureResult> results) {
          measured = std::move(results);
        });
    return measured;
  }

  std::unique_ptr<CpuMeasurer> measurer_ = CpuMeasurer::Create({}).value();
};

TEST_F(CpuMeasurerTest, FinalRoundTimesInTurnWhateverIsKnown) {
  ASSERT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
  for (const auto protocol :
       {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_MODEL}) {
    const std::vector<v1::MeasureResult> results = Measure({kPlain, kBlocked, kVectors}, protocol);
    ASSERT_EQ(results.size(), 3u);
    for (const v1::MeasureResult& result : results) {
      ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
      EXPECT_TRUE(result.verification().passed());
      EXPECT_EQ(result.verification().elements_checked(), 64000u);
      EXPECT_EQ(result.timing().protocol(), protocol);
      EXPECT_EQ(result.timing().samples_seconds_size(), results[0].timing().samples_seconds_size());
      EXPECT_GE(result.timing().samples_seconds_size(), 2);
      EXPECT_GT(result.timing().seconds(), 1e-7);
      EXPECT_EQ(result.timing().baseline_seconds(), results[0].timing().baseline_seconds());
      EXPECT_GT(result.timing().baseline_seconds(), 0);
      EXPECT_EQ(result.device().device(), "cpu");
      EXPECT_NE(result.code_digest(), "");
      EXPECT_NE(result.toolchain().llvm(), "");
    }
    EXPECT_NE(results[0].code_digest(), results[2].code_digest());
  }
}

TEST_F(CpuMeasurerTest, ConstantsAreMeasuredInAProcessOfTheirOwn) {
  for (const int threads : {1, 2}) {
    const auto never = [] { return false; };
    const absl::StatusOr<v1::DeviceConstants> measured = measurer_->MeasureConstants(threads, never);
    ASSERT_TRUE(measured.ok()) << measured.status();
    std::vector<std::string> refused;
    const v1::DeviceConstants sound = SoundConstants(*measured, &refused);
    EXPECT_THAT(refused, ::testing::IsEmpty());
    EXPECT_EQ(ConstantOf(sound, kThreadsConstant), threads);
    for (const char* const name :
         {kClockConstant, kPeakOfThread, kFmaLatency, kMemoryOfThread, kMemoryLatency})
      EXPECT_GT(ConstantOf(sound, name), 0) << name;
    // On a busy host what all threads reach is unknown.
    EXPECT_EQ(ConstantOf(sound, kLaunchTime) > 0, threads > 1);
    if (threads == 1) {
      EXPECT_EQ(ConstantOf(sound, kPeakOfAll), 0);
    }
  }
  EXPECT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
}

// This holds for a wait to build and for a wait to time.
TEST_F(CpuMeasurerTest, WhatWasMeasuredIsNotBuiltAgain) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string counted = folder.path() + "/builds";
  ASSERT_EQ(setenv(kCountedBuilds, counted.c_str(), 1), 0);
  measurer_ = CpuMeasurer::Create({}).value();
  const auto builds = [&counted] { return ReadFile(counted).value(); };
  const v1::MeasureResult plain = Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0];
  ASSERT_EQ(unsetenv(kCountedBuilds), 0);  // the builders have started
  ASSERT_EQ(plain.status(), v1::MEASURE_STATUS_OK) << plain.error();
  ASSERT_EQ(Measure({kBlocked}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
  EXPECT_EQ(builds(), absl::StrCat(kPlain, "\n", kBlocked, "\n"));
  const std::vector<v1::MeasureResult> round =
      Measure({kBlocked, kVectors, kPlain}, v1::TIMING_PROTOCOL_WARM);
  ASSERT_EQ(round.size(), 3u);
  for (const v1::MeasureResult& result : round)
    EXPECT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  EXPECT_EQ(round[2].code_digest(), plain.code_digest());
  EXPECT_EQ(round[2].timing().build_seconds(), plain.timing().build_seconds());
  EXPECT_EQ(builds(), absl::StrCat(kPlain, "\n", kBlocked, "\n", kVectors, "\n"));
  // A failure is not kept.
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Measure({kNone}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_EQ(builds(), absl::StrCat(kPlain, "\n", kBlocked, "\n", kVectors, "\n", kNone, "\n", kNone, "\n"));
}

TEST_F(CpuMeasurerTest, ATrialThatNobodyWantsAnyMoreDoesNotWaitForTheHostsLock) {
  const TemporaryFolder locks = TemporaryFolder::Create().value();
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", locks.path().c_str(), 1), 0);
  for (const HostLock::Mode mode : {HostLock::Mode::kTiming, HostLock::Mode::kWorking}) {
    const HostLock held(mode);
    v1::Assignment assignment;
    assignment.set_workload(kDoubling);
    assignment.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2");
    assignment.set_trace(kPlain);
    assignment.set_protocol(v1::TIMING_PROTOCOL_WARM);
    std::atomic<int> asked = 0;
    measurer_->Measure(
        {assignment}, [&asked](const v1::LeaseId&) { return ++asked > 12; },  // while it waits
        [](const v1::Assignment&, const std::vector<v1::MeasureResult>&) { ADD_FAILURE() << "a result"; });
    EXPECT_GT(asked, 12);
  }
  ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
}

TEST_F(CpuMeasurerTest, NothingRunsWhoseTrialIsRevokedWhileItsInputsAreMade) {
  const TemporaryFolder scratch = TemporaryFolder::Create().value();
  ASSERT_EQ(setenv("TMPDIR", scratch.path().c_str(), 1), 0);
  measurer_ = CpuMeasurer::Create({}).value();
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
  const auto inputs_are_made = [&scratch](const v1::LeaseId&) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path())) {
      if (entry.path().parent_path().filename().string().rfind("case-", 0) == 0) return true;
    }
    return false;
  };
  v1::Assignment assignment;
  assignment.set_workload(kDoubling);
  assignment.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2");
  assignment.set_trace(kPlain);
  assignment.set_protocol(v1::TIMING_PROTOCOL_WARM);
  measurer_->Measure(
      {assignment}, inputs_are_made,
      [](const v1::Assignment&, const std::vector<v1::MeasureResult>&) { ADD_FAILURE() << "a result"; });
  EXPECT_TRUE(inputs_are_made({}));
}

// The cache of references keeps those used last.
TEST_F(CpuMeasurerTest, ReferencesUsedLongestAgoAreRemoved) {
  const TemporaryFolder cache = TemporaryFolder::Create().value();
  ASSERT_EQ(setenv("XDG_CACHE_HOME", cache.path().c_str(), 1), 0);
  const std::string folder = cache.path() + "/mycc/reference";
  const auto references = [&folder] {
    const std::filesystem::directory_iterator files(folder);
    return std::distance(begin(files), end(files));
  };
  const auto measure = [this](const std::string& workload) {
    const v1::MeasureResult result = Measure({kPlain}, v1::TIMING_PROTOCOL_WARM, 1e-9, workload)[0];
    EXPECT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  };
  CpuMeasurerOptions options;
  options.max_cache_bytes = 1;
  measurer_ = CpuMeasurer::Create(options).value();
  measure(kDoubling);
  EXPECT_EQ(references(), 1);
  const std::string first = std::filesystem::directory_iterator(folder)->path();
  measure(kRoot);
  EXPECT_EQ(references(), 1);
  EXPECT_FALSE(std::filesystem::exists(first));
  // The usual cache keeps as many as there is room for.
  measurer_ = CpuMeasurer::Create({}).value();
  measure(kDoubling);
  EXPECT_EQ(references(), 2);
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
}

TEST_F(CpuMeasurerTest, WhoCannotBeBuiltIsOutAlone) {
  const std::vector<v1::MeasureResult> results = Measure({kNone, kPlain, kVectors}, v1::TIMING_PROTOCOL_WARM);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status(), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_THAT(results[0].reproduction(), HasSubstr("t9.a0"));
  EXPECT_EQ(results[1].status(), v1::MEASURE_STATUS_OK) << results[1].error();
  EXPECT_EQ(results[2].status(), v1::MEASURE_STATUS_OK) << results[2].error();
  EXPECT_EQ(results[1].timing().samples_seconds_size(), results[2].timing().samples_seconds_size());
}

TEST_F(CpuMeasurerTest, WhoMayBeTheBestIsProven) {
  const v1::MeasureResult first = Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0];
  ASSERT_EQ(first.status(), v1::MEASURE_STATUS_OK) << first.error();
  EXPECT_GE(first.verification().strained_launches(), kProvenLaunches);
  EXPECT_EQ(first.verification().launches(), first.verification().strained_launches() + 1);
  EXPECT_TRUE(first.verification().passed());
  EXPECT_EQ(first.verification().elements_checked(), 64000u);
  EXPECT_EQ(first.verification().seeds_size(), 1);

  const v1::MeasureResult behind = Measure({kBlocked}, v1::TIMING_PROTOCOL_WARM, /*best_seconds=*/1e-9)[0];
  ASSERT_EQ(behind.status(), v1::MEASURE_STATUS_OK) << behind.error();
  EXPECT_GE(behind.verification().launches(), 2u);
  EXPECT_EQ(behind.verification().strained_launches(), 0u);
  EXPECT_FALSE(IsProven(behind.verification()));
}

// The known result of an equal binary is not reused where it lacks the proof that is asked for.
TEST_F(CpuMeasurerTest, WhatWasBehindIsMeasuredAgainWhereItLeads) {
  EXPECT_FALSE(
      IsProven(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM, /*best_seconds=*/1e-9)[0].verification()));
  EXPECT_TRUE(IsProven(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].verification()));
  const v1::MeasureResult known = Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0];
  EXPECT_TRUE(IsProven(known.verification()));
  EXPECT_EQ(known.timing().run_seconds(), 0) << "an equal binary is not run again";
}

TEST_F(CpuMeasurerTest, TheFastestOfAFinalRoundIsProven) {
  const std::vector<v1::MeasureResult> round =
      Measure({kPlain, kBlocked}, v1::TIMING_PROTOCOL_WARM, /*best_seconds=*/1e-9);
  for (const v1::MeasureResult& result : round)
    ASSERT_EQ(result.status(), v1::MEASURE_STATUS_OK) << result.error();
  const bool first_is_faster = round[0].timing().seconds() <= round[1].timing().seconds();
  EXPECT_TRUE(IsProven(round[first_is_faster ? 0 : 1].verification()));
}

TEST_F(CpuMeasurerTest, WhatIsWrongOfSpecialValuesAloneIsWrong) {
  EXPECT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM, 0, kRoot)[0].status(), v1::MEASURE_STATUS_OK);
  const v1::MeasureResult result = Measure({kEstimate}, v1::TIMING_PROTOCOL_WARM, 0, kRoot)[0];
  EXPECT_EQ(result.status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_THAT(result.error(), HasSubstr("on inputs with special values"));
  EXPECT_FALSE(result.verification().passed());
}

TEST_F(CpuMeasurerTest, SumsThatThreadsRaceForAreWrong) {
  const v1::MeasureResult result = Measure({kRacy}, v1::TIMING_PROTOCOL_WARM, 0, kSums)[0];
  EXPECT_EQ(result.status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_EQ(result.timing().seconds(), 0);
  EXPECT_NE(result.reproduction(), "");
  EXPECT_FALSE(result.verification().passed());
}

TEST_F(CpuMeasurerTest, WritesOutOfBoundsAreTheCandidatesFailure) {
  const v1::MeasureResult beside = Measure({kBeside}, v1::TIMING_PROTOCOL_WARM)[0];
  EXPECT_EQ(beside.status(), v1::MEASURE_STATUS_WRONG_RESULT);
  EXPECT_THAT(beside.error(), HasSubstr("the kernel wrote beside its output y"));
  const v1::MeasureResult far_away = Measure({kFarAway}, v1::TIMING_PROTOCOL_WARM)[0];
  EXPECT_EQ(far_away.status(), v1::MEASURE_STATUS_RUN_ERROR) << far_away.error();
  EXPECT_EQ(Measure({kPlain}, v1::TIMING_PROTOCOL_WARM)[0].status(), v1::MEASURE_STATUS_OK);
}

TEST_F(CpuMeasurerTest, WhatCannotBeWrittenIsTheWorkersFailure) {
  v1::BuildRequest build;
  build.set_workload(kDoubling);
  build.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2");
  build.set_trace(kPlain);
  build.set_directory("/nowhere");
  EXPECT_THAT(HandleBuildRequest(build).error(), HasSubstr("`/nowhere/"));
  EXPECT_TRUE(HandleBuildRequest(build).unfit());
  build.set_trace(kNone);
  EXPECT_NE(HandleBuildRequest(build).error(), "");
  EXPECT_FALSE(HandleBuildRequest(build).unfit()) << "the candidate's own";

  v1::RunnerRequest run;
  run.mutable_prepare()->set_workload(kDoubling);
  run.mutable_prepare()->set_directory("/nowhere");
  const v1::RunnerResponse response = HandleRunnerRequest(run);
  EXPECT_EQ(response.status(), v1::MEASURE_STATUS_WORKER_UNFIT);
  EXPECT_THAT(response.error(), HasSubstr("`/nowhere/"));
}

// A candidate beside itself takes its pacer's usual time, whatever the clock says.
TEST_F(CpuMeasurerTest, ATrialIsTimedByItsPacer) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  v1::BuildRequest build;
  build.set_workload(kDoubling);
  build.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1");
  build.set_trace(kVectors);
  build.set_directory(folder.path());
  const v1::BuildResponse built = HandleBuildRequest(build);
  ASSERT_EQ(built.error(), "");
  v1::RunnerRequest prepare, request;
  prepare.mutable_prepare()->set_workload(kDoubling);
  prepare.mutable_prepare()->set_directory(folder.path());
  ASSERT_EQ(HandleRunnerRequest(prepare).status(), v1::MEASURE_STATUS_OK);
  v1::RunRequest& run = *request.mutable_run();
  run.set_workload(kDoubling);
  run.set_library(built.library());
  run.set_case_directory(folder.path());
  run.set_threads(1);
  run.set_protocol(v1::TIMING_PROTOCOL_WARM);
  run.set_budget_seconds(0.1);
  const std::string pacer = folder.path() + "/pacer.so";
  std::filesystem::copy_file(built.library(), pacer);
  run.set_pacer(pacer);
  run.set_pacer_seconds(0.01);
  const v1::RunnerResponse timed = HandleRunnerRequest(request);
  ASSERT_EQ(timed.status(), v1::MEASURE_STATUS_OK) << timed.error();
  EXPECT_GT(timed.timing().seconds(), 0.005);
  EXPECT_LT(timed.timing().seconds(), 0.02);
  EXPECT_LT(timed.timing().samples_seconds(0), 0.005) << "a microsecond or ten";
}

TEST_F(CpuMeasurerTest, WhatCannotBeLoadedIsTheWorkersFailure) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  v1::RunnerRequest prepare;
  prepare.mutable_prepare()->set_workload(kDoubling);
  prepare.mutable_prepare()->set_directory(folder.path());
  ASSERT_EQ(HandleRunnerRequest(prepare).status(), v1::MEASURE_STATUS_OK);
  // The loader refuses the file, as it does on a file system that is mounted noexec.
  const std::string library = folder.path() + "/refused.so";
  ASSERT_TRUE(WriteFileAtomically(library, "what the loader refuses").ok());

  v1::RunnerRequest run, prove;
  run.mutable_run()->set_workload(kDoubling);
  run.mutable_run()->set_library(library);
  run.mutable_run()->set_case_directory(folder.path());
  prove.mutable_prove()->set_workload(kDoubling);
  prove.mutable_prove()->set_library(library);
  prove.mutable_prove()->set_case_directory(folder.path());
  prepare.mutable_prepare()->set_library(library);
  for (const v1::RunnerRequest& request : {run, prove, prepare}) {
    const v1::RunnerResponse refused = HandleRunnerRequest(request);
    EXPECT_EQ(refused.status(), v1::MEASURE_STATUS_WORKER_UNFIT);
    EXPECT_THAT(refused.error(), HasSubstr("refused.so"));
  }
  run.mutable_run()->set_case_directory("/nowhere");
  prove.mutable_prove()->set_case_directory("/nowhere");
  for (const v1::RunnerRequest& request : {run, prove}) {
    const v1::RunnerResponse missing = HandleRunnerRequest(request);
    EXPECT_EQ(missing.status(), v1::MEASURE_STATUS_WORKER_UNFIT);
    EXPECT_THAT(missing.error(), HasSubstr("/nowhere/"));
  }
}

// The naive schedule with every loop of its sums carried out in parallel.
absl::StatusOr<KernelSpec> RacyKernel(const v1::BuildRequest& request, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "test"));
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(kPlain));
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, CompileKernel(workload, target, trace));
  kernel.lowered.kernel.body = RewriteStmts(kernel.lowered.kernel.body, [](const Stmt& stmt) -> Stmt {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->var->extent != 4000) return nullptr;
    return loop->With({.loop_kind = LoopKind::kParallel});
  });
  kernel.lowered.parallel = true;
  return kernel;
}

// The naive schedule that stores each result `elements` behind its place.
absl::StatusOr<KernelSpec> StrayingKernel(const v1::BuildRequest& request, const Target& target,
                                          int64_t elements) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload(), "test"));
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(kPlain));
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, CompileKernel(workload, target, trace));
  kernel.lowered.kernel.body = RewriteStmts(kernel.lowered.kernel.body, [=](const Stmt& stmt) -> Stmt {
    const Store* store = DynAs<Store>(stmt);
    if (store == nullptr) return nullptr;
    std::vector<Expr> indices = store->indices;
    indices.back() = indices.back() + elements;
    return std::make_shared<Store>(store->buffer, std::move(indices), store->value);
  });
  return kernel;
}

absl::StatusOr<KernelSpec> EstimatingKernel(const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(kRefined, "workload"));
  return CompileKernel(workload, target, {});
}

absl::StatusOr<KernelSpec> FaultyKernel(const v1::BuildRequest& request, const Target& target) {
  constexpr int64_t kLittle = 64, kFar = int64_t{1} << 40;
  if (request.trace() == kRacy) return RacyKernel(request, target);
  if (request.trace() == kBeside) return StrayingKernel(request, target, kLittle);
  if (request.trace() == kFarAway) return StrayingKernel(request, target, kFar);
  return EstimatingKernel(target);
}

absl::StatusOr<v1::BuildResponse> BuildFaulty(const v1::BuildRequest& request) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, FaultyKernel(request, target));
  LibrarySpec library{.module = "trial", .target = target, .kernels = {}};
  library.kernels.push_back(std::move(kernel));
  v1::BuildResponse response;
  response.set_code_digest(request.trace());
  response.set_library(request.directory() + "/" + request.trace() + ".so");
  MYCC_RETURN_IF_ERROR(BuildSharedObject(library, response.library()).status());
  return response;
}

std::string AnswerBuild(const std::string& payload) {
  v1::BuildRequest request;
  (void)request.ParseFromString(payload);
  if (const char* counted = std::getenv(kCountedBuilds); counted != nullptr && !request.trace().empty())
    std::ofstream(counted, std::ios::app) << request.trace() << "\n";
  const bool is_faulty = request.trace() == kRacy || request.trace() == kEstimate ||
                         request.trace() == kBeside || request.trace() == kFarAway;
  return is_faulty ? BuildFaulty(request)->SerializeAsString()
                   : HandleBuildRequest(request).SerializeAsString();
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == mycc::kBuildCommand) return mycc::ForkServerMain(mycc::AnswerBuild);
  if (const std::optional<int> code = mycc::RunWorkerChild(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
