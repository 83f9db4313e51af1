#include "tests/cuda/rule_points.h"

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/schedule/testing.h"

namespace mycc {

double OutputTolerance(const Workload& workload) {
  double tolerance = 1e-5;
  for (const Buffer& output : workload.outputs) {
    if (output->dtype == DType::kF16) tolerance = std::max(tolerance, 2e-3);
    if (output->dtype == DType::kBF16) tolerance = std::max(tolerance, 1e-2);
  }
  return tolerance;
}

absl::StatusOr<LoweredFunction> LowerPoint(const Workload& workload, const Sketch& sketch,
                                           const Choice& choice, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, sketch.instantiate(choice));
  const auto in_trace = [&](const absl::Status& status, const std::string& more) {
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", PrintTrace(trace), more));
  };
  const absl::StatusOr<Schedule> schedule = Replay(workload, target, trace);
  if (!schedule.ok()) return in_trace(schedule.status(), "");
  absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
  if (!lowered.ok()) return in_trace(lowered.status(), PrintFunction(schedule->function()));
  return lowered;
}

void CheckPoint(const Workload& workload, const Sketch& sketch, const Choice& choice, const Target& target) {
  const absl::StatusOr<LoweredFunction> lowered = LowerPoint(workload, sketch, choice, target);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = PrintTrace(*sketch.instantiate(choice));
  const absl::Status status = CheckLowered(workload, *lowered, OutputTolerance(workload));
  ASSERT_TRUE(status.ok()) << status << "\n" << text << PrintLowered(*lowered);
  const absl::StatusOr<CudaProgram> program = EmitCuda(*lowered, target, "k");
  ASSERT_TRUE(program.ok()) << program.status() << "\n" << text << PrintLowered(*lowered);
  const absl::StatusOr<CudaImage> image = CompileCuda(program->source, target);
  ASSERT_TRUE(image.ok()) << image.status() << "\n" << text << program->source;
  EXPECT_EQ(image->kernels.size(), program->call.size() + program->pack.size()) << text;
  for (const CudaKernelResources& kernel : image->kernels) EXPECT_EQ(kernel.spill_bytes, 0) << text;
}

void CheckPointsOf(const Workload& workload, const Sketch& sketch, const Target& target, int count) {
  ASSERT_TRUE(sketch.space.Legal(sketch.default_choice));
  CheckPoint(workload, sketch, sketch.default_choice, target);
  std::mt19937 rng(1);
  for (int tries = 0; tries < 10000 && count > 0 && !testing::Test::HasFatalFailure(); ++tries) {
    Choice choice;
    for (const Decision& decision : sketch.space.decisions)
      choice.push_back(static_cast<int>(rng() % decision.choices.size()));
    if (!sketch.space.Legal(choice)) continue;
    CheckPoint(workload, sketch, choice, target);
    --count;
  }
  EXPECT_EQ(count, 0) << "random points are missing: no more of them were legal, or one failed";
}

std::vector<Sketch> SketchesWith(const Workload& workload, const std::string& step, const Target& target) {
  std::vector<Sketch> sketches = GenerateSketches(workload, target);
  std::erase_if(sketches, [&](const Sketch& sketch) {
    const absl::StatusOr<Trace> trace = sketch.instantiate(sketch.default_choice);
    return !trace.ok() || !absl::StrContains(PrintTrace(*trace), step);
  });
  return sketches;
}

}  // namespace mycc
