// Any text is refused with a place, or is a valid workload that survives every round trip.
#include <string>

#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

constexpr int64_t kSmall = 4096;

// Elements and points are few enough to compute.
bool IsSmall(const Workload& workload) {
  double points = CountBytes(workload);
  for (const Stage& stage : workload.stages) {
    double own = static_cast<double>(stage.output->num_elements());
    for (const Var& axis : stage.reduce_axes) own *= static_cast<double>(axis->extent);
    points += own;
  }
  return points <= static_cast<double>(kSmall);
}

void Check(const Workload& workload) {
  const absl::Status valid = Validate(workload);
  MYCC_CHECK(valid.ok()) << valid;
  const auto reparsed = ParseWorkload(PrintWorkload(workload), "printed");
  MYCC_CHECK(reparsed.ok()) << reparsed.status() << "\n" << PrintWorkload(workload);
  MYCC_CHECK(PrintWorkload(*reparsed) == PrintWorkload(workload));
  const std::string canonical = CanonicalText(workload);
  const auto again = ParseWorkload(canonical, "canonical");
  MYCC_CHECK(again.ok()) << again.status() << "\n" << canonical;
  MYCC_CHECK(CanonicalText(*again) == canonical) << canonical;
  MYCC_CHECK(ShapeErasedText(*again) == ShapeErasedText(workload)) << canonical;
  if (!IsSmall(workload)) return;
  const auto outputs = RunReference(workload, RandomInputs(workload, 1));
  MYCC_CHECK(outputs.ok()) << outputs.status() << "\n" << canonical;  // a read outside is an error
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto workloads = mycc::ParseWorkloads(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (workloads.ok()) {
    for (const mycc::Workload& workload : *workloads) mycc::Check(workload);
  } else {
    const std::string message(workloads.status().message());
    MYCC_CHECK(message.compare(0, 5, "fuzz:") == 0 && message.find("expected") != std::string::npos)
        << message;
  }
  return 0;
}
