#include "tests/schedule/testing.h"

#include <cmath>
#include <cstdlib>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/verify.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

bool IsClose(DType dtype, Scalar actual, Scalar expected, double tolerance) {
  if (!IsFloat(dtype)) return actual.i == expected.i;
  if (std::isnan(expected.f)) return std::isnan(actual.f);
  return actual.f == expected.f || std::abs(actual.f - expected.f) <= tolerance * (1 + std::abs(expected.f));
}

std::string TextOf(DType dtype, Scalar value) {
  return IsFloat(dtype) ? absl::StrCat(value.f) : absl::StrCat(value.i);
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
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  usual = (usual + 4) / 5;
#endif
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

absl::Status CheckClose(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected,
                        double tolerance, const std::string& who) {
  for (size_t o = 0; o < expected.size(); ++o) {
    const DType dtype = expected[o].dtype;
    for (int64_t i = 0; i < expected[o].num_elements(); ++i) {
      const Scalar a = actual[o].Get(i), e = expected[o].Get(i);
      if (IsClose(dtype, a, e, tolerance)) continue;
      return absl::InternalError(absl::StrCat(who, " differs in output ", o, " at element ", i, ": ",
                                              TextOf(dtype, a), ", expected ", TextOf(dtype, e)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFunction(const Workload& canonical, const Function& function, double tolerance) {
  const std::vector<NDArray> inputs = RandomInputs(canonical, 7);
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> expected, RunReference(canonical, inputs));
  for (uint64_t seed = 0; seed < 2; ++seed) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> actual, RunFunction(function, inputs, seed));
    MYCC_RETURN_IF_ERROR(CheckClose(actual, expected, tolerance, "the function"));
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
