#include "server/constants_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/device_constants.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr size_t kMostHostBytes = 256;

// The device as the log knows it, without constants.
StoredConstants DescribeOffer(const WorkerTable::Session& session, const WorkerTable::Device& device) {
  StoredConstants described;
  described.host = ToUtf8(device.offer.info().host().substr(0, kMostHostBytes));
  described.device = ToUtf8(device.offer.device());
  described.model = ToUtf8(device.offer.info().model());
  described.target = PrintTarget(device.target);
  described.worker = ToUtf8(session.worker);
  described.constants.set_version(kConstantsVersion);
  return described;
}

}  // namespace

ConstantsTable::ConstantsTable(TuningLog* log, const TimeSource* time, WriteExecutor write, EventLog told)
    : store_(log), time_(time), write_(std::move(write)), told_(std::move(told)) {}

absl::Status ConstantsTable::Start() {
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredConstants> listed, store_.List());
  for (const StoredConstants& one : listed) Know(one);
  return absl::OkStatus();
}

void ConstantsTable::Know(const StoredConstants& constants) {
  known_[constants.key()] = constants.measured_unix_micros;
  if (known_.size() <= static_cast<size_t>(ConstantsStore::kMostDevices)) return;
  known_.erase(
      std::ranges::min_element(known_, [](const auto& a, const auto& b) { return a.second < b.second; }));
}

std::vector<std::string> ConstantsTable::Unmeasured(const WorkerTable::Session& session) const {
  std::vector<std::string> names;
  for (const auto& [name, device] : session.devices) {
    const bool can_be = device.offer.constants().version() == kConstantsVersion;
    if (can_be && !known_.contains(DescribeOffer(session, device).key())) names.push_back(name);
  }
  return names;
}

void ConstantsTable::Take(const v1::HeartbeatRequest& request, const WorkerTable::Session& session,
                          const std::function<void(const std::string&)>& refuse, std::function<void()> done) {
  std::vector<StoredConstants> kept;
  for (const v1::MeasuredConstants& measured : request.constants()) {
    const auto device = session.devices.find(measured.device());
    if (device == session.devices.end()) {
      refuse("constants of a device that it does not offer");
      continue;
    }
    StoredConstants made = DescribeOffer(session, device->second);
    std::vector<std::string> refused;
    made.constants = SoundConstants(measured.constants(), &refused);
    for (const std::string& line : refused) refuse(absl::StrCat(made.device, ": ", line));
    // One that is repeated, since its answer was lost, is in the log.
    if (made.constants.values().empty() || known_.contains(made.key())) continue;
    made.measured_unix_micros = time_->UnixMicros();
    kept.push_back(std::move(made));
  }
  if (kept.empty()) return done();
  const auto shared = std::make_shared<const std::vector<StoredConstants>>(std::move(kept));
  write_(
      [this, shared] {
        for (const StoredConstants& one : *shared) MYCC_RETURN_IF_ERROR(store_.Save(one));
        return absl::OkStatus();
      },
      [this, shared, done = std::move(done)](const absl::Status& status) {
        for (const StoredConstants& one : *shared) {
          if (status.ok()) Know(one);
          if (!status.ok() && told_) {
            told_(absl::StrCat("the constants of ", one.device, " of worker ", one.worker,
                               " are not kept: ", status.message()));
          }
        }
        done();
      });
}

}  // namespace mycc
