// The compile driver: a kernel keeps the names that its user gave, a schedule that does not fit is refused
// with its reason, and code is emitted in the forms that its target has.
#include "codegen/driver/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kScale[] =
    "workload scale(image: f32[64], gain: const f32[64]) -> (bright: f32[64]) "
    "{ bright[i] = image[i] * gain[i] }";

Target Cpu() { return ParseTarget("v1 cpu mcpu=haswell l1d=32K l2=256K threads=2").value(); }
Target Gpu() { return ParseTarget("h200").value(); }
Workload Parsed(const std::string& text) { return ParseWorkload(text, "test").value(); }
Trace Steps(const std::string& steps) { return ParseTrace(absl::StrCat("v1\n", steps)).value(); }

absl::Status Refusal(const std::string& workload, const Target& target, const std::string& steps) {
  return CompileKernel(Parsed(workload), target, Steps(steps)).status();
}

TEST(CompileKernelTest, KeepsTheUsersNamesAndTheTrace) {
  const Trace trace = Steps("split(t2.a0, [8])\nbind(t2.a0.1, vector)\n");
  for (const Target& target : {Cpu(), Gpu()}) {
    const absl::StatusOr<KernelSpec> kernel = CompileKernel(Parsed(kScale), target, trace);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(kernel->workload.name, "scale");
    EXPECT_EQ(kernel->workload.inputs[1].tensor->name, "gain");
    EXPECT_EQ(PrintTrace(kernel->trace), PrintTrace(trace));
    EXPECT_EQ(kernel->reason, Reason::kMiss);
    EXPECT_FALSE(kernel->record.has_value() || kernel->expected_seconds.has_value());
    EXPECT_EQ(kernel->lowered.packed_bytes.size(), 3u);
    EXPECT_EQ(kernel->program.source.empty(), target.kind == TargetKind::kCpu) << "emitted with its library";
  }
}

TEST(CompileKernelTest, AScheduleThatWasReplayedIsTheSameKernel) {
  const Workload workload = Parsed(kScale);
  const Trace trace = Steps("split(t2.a0, [8])\nbind(t2.a0.1, vector)\n");
  const Schedule schedule = Replay(Canonicalize(workload), Cpu(), trace).value();
  const KernelSpec scheduled = CompileScheduled(workload, Cpu(), trace, schedule.function()).value();
  const KernelSpec compiled = CompileKernel(workload, Cpu(), trace).value();
  EXPECT_EQ(PrintLowered(scheduled.lowered), PrintLowered(compiled.lowered));
  EXPECT_NE(PrintLowered(scheduled.lowered), PrintLowered(CompileKernel(workload, Cpu(), {})->lowered));
}

TEST(CompileKernelTest, RefusalsNameTheStepOrTheReason) {
  // By the schedule's primitive, by lowering, and by the back end of a GPU.
  const absl::Status step = Refusal(kScale, Cpu(), "split(t9.a0, [8])\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(step)) << step;
  EXPECT_THAT(std::string(step.message()), HasSubstr("t9.a0"));
  const std::string large =
      "workload w(x: f32[512,512,8]) -> (y: f32[512,512,8]) { y[i,j,k] = exp(x[i,j,k]) }";
  const absl::Status lowering = Refusal(large, Cpu(), "bind(t1.a0, unroll)\nbind(t1.a1, unroll)\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(lowering)) << lowering;
  EXPECT_THAT(std::string(lowering.message()), HasSubstr("instructions; at most"));
  const absl::Status back_end =
      Refusal("workload w(x: f32[4096]) -> (y: f32[4096]) { y[i] = x[i] }", Gpu(), "bind(t1.a0, thread)\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(back_end)) << back_end;
  EXPECT_THAT(std::string(back_end.message()), HasSubstr("1024"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Refusal(kScale, Cpu(), "bind(t2.a0, block)\n")));
}

TEST(EmitTextTest, EachTargetHasItsForms) {
  const KernelSpec on_cpu = CompileKernel(Parsed(kScale), Cpu(), {}).value();
  const KernelSpec on_gpu = CompileKernel(Parsed(kScale), Gpu(), {}).value();
  EXPECT_THAT(EmitText(on_cpu, Cpu(), "llvm").value(), AllOf(HasSubstr("define"), HasSubstr("@scale_body")));
  EXPECT_THAT(EmitText(on_cpu, Cpu(), "asm").value(), AllOf(HasSubstr("scale_body:"), HasSubstr("vmulss")));
  EXPECT_THAT(EmitText(on_gpu, Gpu(), "cuda").value(),
              AllOf(HasSubstr("__global__"), HasSubstr(" scale_0("), Not(HasSubstr(" kernel_0("))));
  EXPECT_THAT(EmitText(on_gpu, Gpu(), "ptx").value(),
              AllOf(HasSubstr(".entry scale_0("), HasSubstr("sm_90a")));
}

TEST(EmitTextTest, OtherFormsAreRefused) {
  const KernelSpec on_cpu = CompileKernel(Parsed(kScale), Cpu(), {}).value();
  const KernelSpec on_gpu = CompileKernel(Parsed(kScale), Gpu(), {}).value();
  const auto refusal = [](const KernelSpec& kernel, const Target& target, const char* form) {
    const absl::Status status = EmitText(kernel, target, form).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << form << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(on_cpu, Cpu(), "ptx"), "no `ptx` for a CPU; expected llvm or asm");
  EXPECT_EQ(refusal(on_gpu, Gpu(), "asm"), "no `asm` for a GPU; expected cuda or ptx");
  refusal(on_cpu, Cpu(), "");
  refusal(on_gpu, Gpu(), "CUDA");
}

TEST(CodeDigestTest, FollowsTheScheduleAndTheTargetAndNotTheNames) {
  const auto digest = [](const std::string& text, const Target& target, const std::string& steps) {
    return CodeDigestOf(CompileKernel(Parsed(text), target, Steps(steps)).value(), target).value();
  };
  const std::string renamed =
      "workload other(a: f32[64], b: const f32[64]) -> (c: f32[64]) { c[n] = a[n] * b[n] }";
  const std::string vectors = "split(t2.a0, [8])\nbind(t2.a0.1, vector)\n";
  const std::string plain = digest(kScale, Cpu(), "");
  EXPECT_EQ(plain, digest(kScale, Cpu(), ""));
  EXPECT_EQ(plain, digest(renamed, Cpu(), ""));
  EXPECT_NE(plain, digest(kScale, Cpu(), vectors));
  EXPECT_NE(plain, digest(kScale, Gpu(), ""));
  Target more_threads = Cpu();
  more_threads.threads = 8;
  EXPECT_NE(plain, digest(kScale, more_threads, ""));
}

// Sums of f32 are in f64 there, whatever the target; what is no sum stays as it is.
TEST(CompileReferenceTest, SumsAreWide) {
  const std::string sum = "workload s(x: f32[64]) -> (y: f32[]) { y[] = sum[i:64](x[i]) }";
  for (const Target& target : {Cpu(), Gpu()}) {
    const auto text = [&](const absl::StatusOr<KernelSpec>& kernel) {
      EXPECT_TRUE(kernel.ok()) << kernel.status();
      return PrintLowered(kernel->lowered);
    };
    EXPECT_THAT(text(CompileReference(Parsed(sum), target)), HasSubstr("f64"));
    EXPECT_THAT(text(CompileKernel(Parsed(sum), target, {})), Not(HasSubstr("f64")));
    EXPECT_THAT(text(CompileReference(Parsed(kScale), target)), Not(HasSubstr("f64")));
    EXPECT_EQ(CompileReference(Parsed(sum), target)->workload.name, "s");
  }
}

TEST(ReasonTest, EachHasItsName) {
  std::vector<std::string> names;
  for (const Reason reason :
       {Reason::kHit, Reason::kStale, Reason::kNear, Reason::kPredicted, Reason::kMiss, Reason::kTrace})
    names.push_back(ReasonName(reason));
  EXPECT_THAT(names, ::testing::ElementsAre("hit", "stale", "near", "predicted", "miss", "trace"));
}

}  // namespace
}  // namespace mycc
