#include "server/worker_table.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr int kLostInARow = 3;
constexpr double kRetrySeconds = 30;

// Unguessable, and different in every run of the server: a session of an earlier run is unknown.
std::string NewSessionId(uint64_t count) {
  std::random_device random;
  return absl::StrFormat("s%d-%08x%08x", count, random(), random());
}

}  // namespace

absl::Status UnknownSession(const std::string& session) {
  return absl::NotFoundError(
      absl::StrCat("unknown session ", session, "; expected the worker to register again"));
}

absl::StatusOr<WorkerTable::Session*> WorkerTable::Register(
    const v1::RegisterRequest& request, double now, std::optional<Session>* replaced,
    const std::function<double(const v1::DeviceOffer&)>& usual) {
  if (request.worker().empty())
    return absl::InvalidArgumentError("a worker registers without a name; expected --name");
  if (request.devices().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", request.worker(), " offers no device; expected at least one"));
  }
  Session session;
  session.id = NewSessionId(++registered_);
  session.worker = request.worker();
  session.toolchain = request.toolchain();
  session.host = request.host();
  session.last_heard = now;
  for (const v1::DeviceOffer& offer : request.devices()) {
    MYCC_ASSIGN_OR_RETURN(Target target, ParseTarget(offer.target()));
    session.devices[offer.device()] =
        Device{offer, std::move(target), BaselineWatch(usual ? usual(offer) : 0)};
  }
  const auto earlier = std::find_if(sessions_.begin(), sessions_.end(), [&session](const auto& known) {
    return known.second.worker == session.worker;
  });
  if (earlier != sessions_.end()) {
    *replaced = std::move(earlier->second);
    sessions_.erase(earlier);
  }
  const std::string id = session.id;
  return &(sessions_[id] = std::move(session));
}

absl::StatusOr<WorkerTable::Session*> WorkerTable::Hear(const std::string& session, double now) {
  Session* found = Find(session);
  if (found == nullptr) return UnknownSession(session);
  found->last_heard = now;
  return found;
}

WorkerTable::Session* WorkerTable::Find(const std::string& session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

bool WorkerTable::Knows(const std::string& worker) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&worker](const auto& known) { return known.second.worker == worker; });
}

std::vector<WorkerTable::Session> WorkerTable::RemoveSilent(double now, double seconds) {
  std::vector<Session> removed;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (now - it->second.last_heard <= seconds) {
      ++it;
      continue;
    }
    removed.push_back(std::move(it->second));
    it = sessions_.erase(it);
  }
  return removed;
}

bool WorkerTable::HasHealthyRival(const Device& device) const {
  std::string why;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, other] : session.devices) {
      const bool healthy = &other != &device && other.drain.empty() && !other.baseline.failing();
      if (healthy && IsCompatible(device.target, other.target, &why)) return true;
    }
  }
  return false;
}

void WorkerTable::Judge(Session* session, const std::string& device_name, const v1::MeasureResult& result,
                        double now) {
  const auto found = session->devices.find(device_name);
  if (found == session->devices.end()) return;
  Device& device = found->second;
  ++device.trials;
  const double baseline = result.timing().baseline_seconds();
  if (baseline > 0) device.baseline.Add(baseline);
  device.lost_in_a_row = IsInfrastructureFailure(result.status()) ? device.lost_in_a_row + 1 : 0;

  std::string reason;
  if (device.lost_in_a_row >= kLostInARow) {
    reason = absl::StrCat("its last ", device.lost_in_a_row, " trials were lost: ", result.error());
  } else if (device.baseline.failing() && HasHealthyRival(device)) {
    reason =
        absl::StrFormat("its baseline kernel takes %.1f times as long as usual", device.baseline.ratio());
  }
  if (!reason.empty()) device.retry_at = now + kRetrySeconds;
  device.drain = std::move(reason);
}

int WorkerTable::Allowance(Device* device, int wanted, double now) {
  if (device->drain.empty()) return wanted;
  if (now < device->retry_at) return 0;
  device->retry_at = now + kRetrySeconds;
  return std::min(wanted, 1);
}

v1::Instructions WorkerTable::TakeInstructions(Session* session) {
  v1::Instructions instructions;
  for (v1::LeaseId& lease : session->revoked) *instructions.add_revoked() = std::move(lease);
  session->revoked.clear();
  for (const auto& [name, device] : session->devices) {
    if (!device.drain.empty()) instructions.set_drain(absl::StrCat(name, ": ", device.drain));
  }
  return instructions;
}

std::vector<v1::DeviceStatus> WorkerTable::Status(
    double now, const std::function<int64_t(const std::string& session)>& leases) const {
  std::vector<v1::DeviceStatus> rows;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, device] : session.devices) {
      v1::DeviceStatus& row = rows.emplace_back();
      row.set_worker(session.worker);
      row.set_device(name);
      row.set_target(device.offer.target());
      *row.mutable_info() = device.offer.info();
      *row.mutable_toolchain() = session.toolchain;
      const int64_t held = leases(id);
      row.set_leases(static_cast<uint32_t>(held));
      row.set_state(!device.drain.empty() ? "draining" : held > 0 ? "busy" : "idle");
      row.set_reason(device.drain);
      row.set_trials(device.trials);
      row.set_baseline_ratio(device.baseline.ratio());
      row.set_silent_seconds(now - session.last_heard);
    }
  }
  return rows;
}

bool WorkerTable::AnyFits(const Target& code) const {
  std::string why;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, device] : session.devices) {
      if (IsMeasurableOn(code, device.target, &why)) return true;
    }
  }
  return false;
}

}  // namespace mycc
