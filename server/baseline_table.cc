#include "server/baseline_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr char kBaselineKernel[] = "worker";  // the worker's own; its timer version and it change together

// A device belongs to a worker by the name that the worker registers with and that is unique at a time: the
// host that a worker says it runs on could be another's.
std::string BaselineKey(const std::string& worker, const std::string& device, const std::string& model) {
  return absl::StrCat(worker, "\n", device, "\n", model);
}

}  // namespace

BaselineTable::BaselineTable(TuningLog* log, const TimeSource* time, WriteExecutor write)
    : store_(log), time_(time), write_(std::move(write)) {}

absl::Status BaselineTable::Start() {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Baseline> known, store_.List());
  for (const Baseline& baseline : known) {
    if (baseline.kernel == kBaselineKernel)
      usual_[BaselineKey(baseline.worker, baseline.device, baseline.device_model)] = baseline.seconds;
  }
  return absl::OkStatus();
}

double BaselineTable::Usual(const std::string& worker, const v1::DeviceOffer& offer) const {
  const auto known = usual_.find(BaselineKey(worker, offer.device(), offer.info().model()));
  return known == usual_.end() ? 0 : known->second;
}

void BaselineTable::Keep(const WorkerTable::Session& session) {
  for (const auto& [name, device] : session.devices) {
    Baseline baseline;
    baseline.worker = session.worker;
    baseline.device = name;
    baseline.kernel = kBaselineKernel;
    baseline.protocol = v1::TIMING_PROTOCOL_WARM;
    baseline.device_model = device.offer.info().model();
    baseline.seconds = device.health.baseline().usual_seconds();
    baseline.measured_unix_micros = time_->UnixMicros();
    if (baseline.seconds <= 0) continue;
    usual_[BaselineKey(baseline.worker, baseline.device, baseline.device_model)] = baseline.seconds;
    // Advice, not state: nobody waits for it.
    write_([store = &store_, baseline] { return store->Save(baseline); }, [](const absl::Status&) {});
  }
}

}  // namespace mycc
