// Work is done once on the way from a workload to a library: counted in what MYCC_TIME_PASSES prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/ir/debug.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "mycc/finder.h"
#include "mycc/unmeasured_schedules.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// How often each step ran on each subject: steps["replay"]["contraction mr=6 nr=16"].
using Steps = std::map<std::string, std::map<std::string, int>>;

// "replay                0.123 ms  contraction mr=6 nr=16"
Steps StepsIn(const std::string& text) {
  Steps steps;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    const std::string name = line.substr(0, line.find(' '));
    const size_t unit = line.find(" ms  ");
    ++steps[name][unit == std::string::npos ? "" : line.substr(unit + 5)];
  }
  return steps;
}

class WorkOnceTest : public ::testing::TestWithParam<const char*> {
 protected:
  WorkOnceTest() { log_ = TuningLog::Open(folder_->path() + "/log.db", OpenMode::kCreate).value(); }

  // The best record there is for the workload: `trace` as this build compiles it.
  void Record(const Trace& trace) {
    v1::Record record;
    record.set_trial("j0123456789abcdef/0/0/1");
    record.set_workload(CanonicalText(gemm_));
    record.set_workload_hash(WorkloadHash(gemm_));
    record.set_shape_erased_hash(ShapeErasedHash(gemm_));
    record.set_target(PrintTarget(target_));
    record.set_trace(PrintTrace(trace));
    v1::MeasureResult* result = record.mutable_result();
    result->set_status(v1::MEASURE_STATUS_OK);
    result->mutable_verification()->set_passed(true);
    result->mutable_timing()->set_protocol(
        ProtocolFor(target_, v1::TIMING_PROTOCOL_UNSPECIFIED, KernelUse::kAlone));
    result->mutable_timing()->set_timer_version(1);
    result->mutable_timing()->set_seconds(1e-3);
    result->set_code_digest(CodeDigestOf(CompileKernel(gemm_, target_, trace).value(), target_).value());
    ASSERT_TRUE(log_->Append({record}).ok());
  }

  // The work of `mycc compile` for one workload, and how its schedule was found.
  Steps CompileLibrary(const TuningLog* log, Reason* reason) {
    SetPassDebug({.time = true});
    ::testing::internal::CaptureStderr();
    absl::StatusOr<Found> found = ScheduleFinder(log, target_).Find(gemm_);
    absl::Status built = found.status();
    if (found.ok()) built = BuildLibrary({"lib", target_, {found->kernel}}, folder_->path()).status();
    const std::string printed = ::testing::internal::GetCapturedStderr();
    SetPassDebug({});
    EXPECT_TRUE(built.ok()) << built;
    *reason = found.ok() ? found->kernel.reason : Reason::kTrace;
    return StepsIn(printed);
  }

  // Each back end's own steps; the other one's are absent.
  void ExpectOneEmission(Steps steps) const {
    const bool cuda = target_.kind == TargetKind::kCuda;
    EXPECT_THAT(steps[cuda ? "emit_cuda" : "emit_llvm"], ElementsAre(Pair(::testing::_, 1)));
    EXPECT_THAT(steps[cuda ? "emit_llvm" : "emit_cuda"], IsEmpty());
    EXPECT_THAT(steps["nvrtc"], cuda ? SizeIs(1) : SizeIs(0));
  }

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
  std::unique_ptr<TuningLog> log_;
  const Target target_ = ParseTarget(GetParam()).value();
  const Workload gemm_ = ParseWorkload(
                             "workload gemm(a: f16[128,64], b: const f16[64,128]) -> (c: f32[128,128]) {\n"
                             "  c[i,j] = sum[k:64](f32(a[i,k]) * f32(b[k,j]))\n}\n",
                             "test")
                             .value();
};

TEST_P(WorkOnceTest, AHitReplaysItsTraceAndEmitsItsCodeOnce) {
  const Trace trace = UnmeasuredSchedules(Canonicalize(gemm_), target_).defaults()[0].trace;
  Record(trace);
  Reason reason;
  Steps steps = CompileLibrary(log_.get(), &reason);
  EXPECT_EQ(reason, Reason::kHit);
  EXPECT_THAT(steps["replay"], ElementsAre(Pair(PrintSketch(trace), 1)));
  ExpectOneEmission(steps);
}

// One replay for each sketch, which says how fast it should be; the chosen one's is what is compiled.
TEST_P(WorkOnceTest, AMissReplaysEachDefaultOnceAndEmitsOne) {
  Reason reason;
  Steps steps = CompileLibrary(log_.get(), &reason);
  EXPECT_EQ(reason, Reason::kMiss);
  const std::string chosen =
      PrintSketch(UnmeasuredSchedules(Canonicalize(gemm_), target_).defaults()[0].trace);
  EXPECT_THAT(steps["replay"], AllOf(Each(Pair(::testing::_, 1)), Contains(Pair(chosen, 1))));
  ExpectOneEmission(steps);
}

INSTANTIATE_TEST_SUITE_P(Targets, WorkOnceTest, ::testing::Values("znver4 threads=2", "h100"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4); });

}  // namespace
}  // namespace mycc
