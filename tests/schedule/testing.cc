#include "tests/schedule/testing.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/interpreter.h"
#include "codegen/ir/verify.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

absl::Status Compare(const NDArray& actual, const NDArray& expected, double tolerance,
                     const std::string& what) {
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const Scalar a = actual.Get(i), e = expected.Get(i);
    const bool ok =
        IsFloat(expected.dtype)
            ? (std::isnan(e.f) ? std::isnan(a.f)
                               : std::abs(a.f - e.f) <= tolerance * (1 + std::abs(e.f)) || a.f == e.f)
            : a.i == e.i;
    if (!ok) {
      return absl::InternalError(absl::StrCat(what, " differs at element ", i, ": ",
                                              IsFloat(expected.dtype) ? a.f : a.i, ", expected ",
                                              IsFloat(expected.dtype) ? e.f : e.i));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> ReplayVerified(const Workload& canonical, const std::string& steps,
                                        const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  Schedule schedule = Schedule::Create(canonical, target);
  MYCC_RETURN_IF_ERROR(VerifyFunction(schedule.function()));
  for (const Step& step : trace.steps) {
    MYCC_RETURN_IF_ERROR(schedule.Apply(step));
    const absl::Status status = VerifyFunction(schedule.function());
    if (!status.ok())
      return absl::InternalError(absl::StrCat("after ", PrintStep(step), ": ", status.message(), "\n",
                                              PrintFunction(schedule.function())));
  }
  return schedule;
}

}  // namespace

int RandomSeeds(int usual) {
  const char* seeds = std::getenv("MYCC_RANDOM_SEEDS");
  return seeds == nullptr ? usual : std::atoi(seeds);
}

Workload CanonicalWorkload(const std::string& text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text, "test.te");
  MYCC_CHECK(workload.ok()) << std::string(workload.status().message());
  return Canonicalize(*workload);
}

Target TestTarget() {
  absl::StatusOr<Target> target = ParseTarget("v1 cpu mcpu=haswell l1d=32K l2=512K threads=2");
  MYCC_CHECK(target.ok()) << std::string(target.status().message());
  return *target;
}

Target TestGpu() {
  absl::StatusOr<Target> target = ParseTarget("h200");
  MYCC_CHECK(target.ok()) << std::string(target.status().message());
  return *target;
}

absl::Status CheckFunction(const Workload& canonical, const Function& function, double tolerance) {
  const std::vector<NDArray> inputs = RandomInputs(canonical, 7);
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> expected, RunReference(canonical, inputs));
  for (uint64_t seed = 0; seed < 2; ++seed) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> actual, RunFunction(function, inputs, seed));
    for (size_t i = 0; i < expected.size(); ++i) {
      MYCC_RETURN_IF_ERROR(Compare(actual[i], expected[i], tolerance, canonical.outputs[i]->name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTrace(const std::string& workload, const std::string& steps, double tolerance,
                        const Target& target) {
  const Workload canonical = CanonicalWorkload(workload);
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, ReplayVerified(canonical, steps, target));
  const absl::Status status = CheckFunction(canonical, schedule.function(), tolerance);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat(status.message(), "\n", PrintFunction(schedule.function())));
}

std::string ScheduledText(const std::string& workload, const std::string& steps, const Target& target) {
  const absl::StatusOr<Schedule> schedule = ReplayVerified(CanonicalWorkload(workload), steps, target);
  return schedule.ok() ? PrintFunction(schedule->function()) : std::string(schedule.status().message());
}

}  // namespace mycc
