// Any text is refused with a place, or is a trace that survives its print; and a trace is refused by the
// schedule with the step that is not legal, or leaves a loop nest that is sound.
#include <string>

#include "base/check.h"
#include "codegen/ir/verify.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

const Workload& Subject() {
  static const auto* const workload = new Workload(Canonicalize(*ParseWorkload(
      R"(workload g(a: f32[7,6], b: const f32[6,10], bias: f32[10]) -> (y: f32[7,10]) {
           c[i,j]: f32[7,10] = sum[k:6](a[i,k] * b[k,j])
           y[i,j] = max(c[i,j] + bias[j], 0.0) })",
      "subject")));
  return *workload;
}

const Target& Machine() {
  static const auto* const target = new Target(*ParseTarget("v1 cpu mcpu=haswell l1d=32K l2=512K threads=2"));
  return *target;
}

void Check(const Trace& trace) {
  const auto again = ParseTrace(PrintTrace(trace));
  MYCC_CHECK(again.ok()) << again.status() << "\n" << PrintTrace(trace);
  MYCC_CHECK(*again == trace) << PrintTrace(trace);
  Schedule schedule = Schedule::Create(Subject(), Machine());
  for (const Step& step : trace.steps) {
    const absl::Status applied = schedule.Apply(step);
    if (!applied.ok()) {
      MYCC_CHECK(absl::IsFailedPrecondition(applied)) << applied << "\n" << PrintTrace(trace);
      return;
    }
    const absl::Status sound = VerifyFunction(schedule.function());
    MYCC_CHECK(sound.ok()) << sound << "\nafter " << PrintStep(step) << " of\n" << PrintTrace(trace);
  }
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = mycc::ParseTrace(std::string(reinterpret_cast<const char*>(data), size));
  if (trace.ok()) {
    mycc::Check(*trace);
  } else {
    MYCC_CHECK(trace.status().message().find(':') != absl::string_view::npos) << trace.status();
  }
  return 0;
}
