#include "server/worker_table.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/timer_version.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr double kAskSeconds = 120;  // a builder that asks for orders less often does not count
// A candidate takes some seven times as long to build as to measure (tests/perf/compile_farm.sh).
constexpr int64_t kBuildsOfDevice = 8;
constexpr int kMostBuildTargets = 64;
constexpr uint32_t kMostBuilders = 4096;
constexpr int kManyFailures = 8;  // in a row: worth a word, where there is nobody to compare with

// Unguessable, and different in every run of the server: a session of an earlier run is unknown.
std::string NewSessionId(uint64_t count) {
  std::random_device random;
  return absl::StrFormat("s%d-%08x%08x%08x%08x", count, random(), random(), random(), random());
}

// A worker that does not say knows the protocols that there were before workers said.
std::set<v1::TimingProtocol> ProtocolsOf(const v1::DeviceOffer& offer) {
  std::set<v1::TimingProtocol> protocols;
  for (const int protocol : offer.protocols()) protocols.insert(static_cast<v1::TimingProtocol>(protocol));
  if (protocols.empty()) protocols = {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD};
  return protocols;
}

// The architectures that a worker builds for.
absl::StatusOr<WorkerTable::Builder> BuilderOf(const v1::RegisterRequest& request, double now) {
  if (request.build_targets().empty() || request.build_targets_size() > kMostBuildTargets) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", request.worker(), " builds for ",
                                                   request.build_targets_size(), " targets; expected 1 to ",
                                                   kMostBuildTargets));
  }
  WorkerTable::Builder builder;
  builder.at_once = std::clamp(request.builders(), 1u, kMostBuilders);
  builder.asked = now;
  for (const std::string& text : request.build_targets()) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(text));
    if (target.kind != TargetKind::kCuda) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", request.worker(), " builds for ", text,
                       "; expected a GPU's target: a CPU's candidates are built where they are measured"));
    }
    builder.archs.push_back(target.arch);
  }
  return builder;
}

}  // namespace

bool WorkerTable::Device::CanMeasure(const Target& code, v1::TimingProtocol protocol) const {
  std::string why;
  return (protocol == v1::TIMING_PROTOCOL_UNSPECIFIED || protocols.contains(protocol)) &&
         IsMeasurableOn(code, target, &why);
}

absl::Status UnknownSession(const std::string& session) {
  return absl::NotFoundError(
      absl::StrCat("unknown session ", session, "; expected the worker to register again"));
}

std::string WorkerTable::Occupied(const Session& earlier, const v1::RegisterRequest& request,
                                  double now) const {
  const double silent = now - earlier.last_heard;
  const bool is_same = earlier.instance == request.instance();
  const bool has_ended = !earlier.instance.empty() && earlier.instance == request.replaces();
  if (is_same || has_ended || silent > lease_seconds_) return "";
  const std::string host = earlier.devices.empty() ? "" : earlier.devices.begin()->second.offer.info().host();
  return absl::StrFormat(
      "the name %s belongs to a worker%s that was heard %.1f s ago; expected another --name, or that the "
      "other is silent for %g s",
      request.worker(), host.empty() ? "" : " on " + host, silent, lease_seconds_);
}

absl::StatusOr<WorkerTable::Session*> WorkerTable::Register(
    const v1::RegisterRequest& request, double now, std::optional<Session>* replaced,
    const std::function<double(const v1::DeviceOffer&)>& usual) {
  if (request.worker().empty())
    return absl::InvalidArgumentError("a worker registers without a name; expected --name");
  const bool builds = request.role() == v1::WORKER_ROLE_BUILD;
  if (request.devices().empty() && !builds) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", request.worker(), " offers no device; expected at least one"));
  }
  Session session;
  session.id = NewSessionId(++registered_);
  session.worker = request.worker();
  session.instance = request.instance();
  session.names_what_it_holds = request.names_what_it_holds();
  session.toolchain = request.toolchain();
  session.host = request.host();
  session.version = ToUtf8(request.version());
  session.last_heard = now;
  if (request.role() != v1::WORKER_ROLE_UNSPECIFIED) session.role = request.role();
  if (builds) {
    MYCC_ASSIGN_OR_RETURN(session.builder, BuilderOf(request, now));
  }
  for (const v1::DeviceOffer& offer : request.devices()) {
    if (builds) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker ", request.worker(), " builds for others and offers a device; expected one or the other"));
    }
    MYCC_ASSIGN_OR_RETURN(Target target, ParseTarget(offer.target()));
    if (offer.timer_version() > kTimerVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", offer.device(), " of worker ", request.worker(), " times by version ",
                       offer.timer_version(), " of the rules; expected at most ", kTimerVersion,
                       ": the server is older, and is to be updated first"));
    }
    session.devices[offer.device()] = Device{
        offer, std::move(target), DeviceHealth(usual ? usual(offer) : 0), "", "", {}, ProtocolsOf(offer)};
  }
  if (Session* const earlier = FindWorker(session.worker); earlier != nullptr) {
    const std::string occupied = Occupied(*earlier, request, now);
    if (!occupied.empty()) return absl::AlreadyExistsError(occupied);
    *replaced = *earlier;
    Remove(earlier->id);
  }
  for (const auto& [name, device] : session.devices) {
    kinds_.try_emplace(device.offer.target(), Kind{device.target, 0}).first->second.devices += 1;
    ++num_devices_;
  }
  by_name_[session.worker] = session.id;
  by_last_heard_.insert({now, session.id});
  const std::string id = session.id;
  return &(sessions_[id] = std::move(session));
}

absl::StatusOr<WorkerTable::Session*> WorkerTable::Renew(const std::string& session, double now) {
  Session* found = Find(session);
  if (found == nullptr) return UnknownSession(session);
  by_last_heard_.erase({found->last_heard, session});
  by_last_heard_.insert({now, session});
  found->last_heard = now;
  return found;
}

WorkerTable::Session* WorkerTable::Find(const std::string& session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

const WorkerTable::Session* WorkerTable::Find(const std::string& session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

WorkerTable::Session* WorkerTable::FindWorker(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &sessions_.at(found->second);
}

void WorkerTable::Remove(const std::string& session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  for (const auto& [name, device] : found->second.devices) {
    const auto kind = kinds_.find(device.offer.target());
    if (--kind->second.devices == 0) kinds_.erase(kind);
    --num_devices_;
  }
  by_name_.erase(found->second.worker);
  by_last_heard_.erase({found->second.last_heard, session});
  sessions_.erase(found);
}

std::vector<WorkerTable::Session> WorkerTable::RemoveSilent(double now, double seconds) {
  std::vector<Session> removed;
  while (!by_last_heard_.empty() && now - by_last_heard_.begin()->first > seconds) {
    const std::string session = by_last_heard_.begin()->second;
    removed.push_back(sessions_.at(session));
    Remove(session);
  }
  return removed;
}

bool WorkerTable::HasHealthyRival(const Device& device, double now) const {
  std::string why;
  for (const auto& [id, session] : sessions_) {
    if (now - session.last_heard > lease_seconds_) continue;
    for (const auto& [name, other] : session.devices) {
      const bool healthy = &other != &device && other.health.drain().empty() && !other.health.is_slow();
      if (healthy && IsCompatible(device.target, other.target, &why)) return true;
    }
  }
  return false;
}

bool WorkerTable::HasElsewhere(const Target& code, v1::TimingProtocol protocol,
                               const std::vector<std::string>& except, double now) const {
  for (const auto& [id, session] : sessions_) {
    if (now - session.last_heard > lease_seconds_) continue;
    if (std::ranges::find(except, session.worker) != except.end()) continue;
    for (const auto& [name, device] : session.devices) {
      const bool works = device.health.drain().empty() && device.trouble.empty();
      if (works && device.CanMeasure(code, protocol)) return true;
    }
  }
  return false;
}

void WorkerTable::Judge(Session* session, const std::string& device_name, const Ended& ended,
                        const v1::MeasureResult& result, double now) {
  const auto found = session->devices.find(device_name);
  if (found == session->devices.end()) return;
  DeviceHealth& health = found->second.health;
  const bool ok = result.status() == v1::MEASURE_STATUS_OK;
  const FailureWatch::Source source{session->worker, device_name};
  health.OnResult(result, HasHealthyRival(found->second, now), now);
  failures_.Add(ended.line, source, ok);
  const std::string verdict = ok ? "" : failures_.Verdict(ended.line, source);
  if (!verdict.empty() && HasElsewhere(ended.code, ended.protocol, {session->worker}, now))
    health.OnOutlier(absl::StrCat(verdict, "; the last: ", health.last_failure()), now);
}

bool WorkerTable::IsBelieved(const Session& session, const std::string& device,
                             const std::string& line) const {
  const auto found = session.devices.find(device);
  return found != session.devices.end() && found->second.health.is_believed() &&
         failures_.IsUsualElsewhere(line, {session.worker, device});
}

void WorkerTable::JudgeLoss(Session* session, const std::string& device, const std::string& error,
                            double now) {
  const auto found = session->devices.find(device);
  if (found != session->devices.end()) found->second.health.OnLoss(error, now);
}

void WorkerTable::JudgeAgain(const std::string& worker, const std::string& device, bool confirmed,
                             const std::string& evidence, double now) {
  Session* const session = FindWorker(worker);
  if (session == nullptr || !session->devices.contains(device)) return;
  DeviceHealth& health = session->devices.at(device).health;
  if (confirmed) {
    health.OnConfirmed();
  } else {
    health.OnRefuted(evidence, now);
  }
}

v1::Instructions WorkerTable::TakeInstructions(Session* session) {
  v1::Instructions instructions;
  for (v1::LeaseId& lease : session->revoked) *instructions.add_revoked() = std::move(lease);
  session->revoked.clear();
  for (auto& [name, device] : session->devices) {
    const std::string& drain = device.health.drain();
    if (!drain.empty()) instructions.set_drain(absl::StrCat(name, ": ", drain));
    Tell(*session, name, drain, &device.told);
  }
  if (session->builder) {
    instructions.set_drain(session->builder->drain());
    Tell(*session, "what it builds", session->builder->drain(), &session->builder->told);
  }
  return instructions;
}

void WorkerTable::Tell(const Session& session, const std::string& what, const std::string& drain,
                       std::string* told) const {
  if (log_ && drain.empty() != told->empty()) {
    Event event(drain.empty() ? "device.recovered" : "device.drained",
                absl::StrCat("worker ", session.worker, ": ", what,
                             drain.empty() ? " gets work again" : " is drained: ", drain));
    event.is_warning = !drain.empty();
    event.worker = session.worker;
    event.device = session.devices.contains(what) ? what : "";
    log_(event);
  }
  *told = drain;
}

bool WorkerTable::Session::BuildsFor(const std::string& target_text) const {
  const absl::StatusOr<Target> target = ParseTarget(target_text);
  return builder && target.ok() && std::ranges::count(builder->archs, target->arch) > 0;
}

bool WorkerTable::HasBuilder(const std::string& target, const std::vector<std::string>& except,
                             double now) const {
  return std::ranges::any_of(sessions_, [&](const auto& entry) {
    const Session& session = entry.second;
    return session.builder && now - session.last_heard <= lease_seconds_ &&
           now - session.builder->asked <= kAskSeconds && session.builder->drain().empty() &&
           std::ranges::count(except, session.worker) == 0 && session.BuildsFor(target);
  });
}

WorkerTable::Builder* WorkerTable::FindBuilder(const std::string& worker) {
  Session* const session = FindWorker(worker);
  return session == nullptr || !session->builder ? nullptr : &*session->builder;
}

std::string WorkerTable::BuildsItself(const Session& session, const Device& device, double now) const {
  const bool is_alone = session.role == v1::WORKER_ROLE_MEASURE && device.target.kind == TargetKind::kCuda &&
                        !HasBuilder(device.offer.target(), {}, now);
  return is_alone ? absl::StrCat("no worker builds for ", device.target.arch, ": it builds itself") : "";
}

std::string WorkerTable::TroubleOf(const Device& device, double now) const {
  if (!device.trouble.empty()) return device.trouble;
  const int failures = device.health.failures_in_a_row();
  if (failures < kManyFailures || HasHealthyRival(device, now)) return "";
  return absl::StrCat(
      "its last ", failures,
      " trials failed, and there is no other worker to compare it with: ", device.health.last_failure());
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
      row.set_state(!device.health.drain().empty() ? "draining" : held > 0 ? "busy" : "idle");
      row.set_reason(device.health.drain());
      const std::string trouble = TroubleOf(device, now);
      row.set_trouble(trouble.empty() ? BuildsItself(session, device, now) : trouble);
      row.set_role(session.role);
      row.set_unconfined(device.offer.unconfined());
      row.set_trials(device.health.trials());
      row.set_refused(session.refused);
      row.set_baseline_ratio(device.health.baseline().ratio());
      row.set_silent_seconds(now - session.last_heard);
      row.set_role(session.role);
      row.set_version(session.version.empty() ? session.toolchain.mycc() : session.version);
      if (!device.reading.device().empty()) *row.mutable_reading() = device.reading;
    }
    if (!session.builder) continue;
    const Builder& builder = *session.builder;
    v1::DeviceStatus& row = rows.emplace_back();
    row.set_worker(session.worker);
    row.set_device(absl::StrCat("builds, ", builder.at_once, " at once"));
    row.set_target(absl::StrJoin(builder.archs, ", "));
    *row.mutable_toolchain() = session.toolchain;
    const int64_t held = leases(id);
    row.set_leases(static_cast<uint32_t>(held));
    row.set_state(!builder.drain().empty() ? "draining" : held > 0 ? "busy" : "idle");
    row.set_reason(builder.drain());
    row.set_role(session.role);
    row.set_version(session.version.empty() ? session.toolchain.mycc() : session.version);
    row.set_builds(builder.finished);
    row.set_refused(session.refused);
    row.set_silent_seconds(now - session.last_heard);
  }
  return rows;
}

std::string WorkerTable::StandstillOf(const Target& code, v1::TimingProtocol protocol) const {
  std::vector<std::string> reasons;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, device] : session.devices) {
      if (!device.CanMeasure(code, protocol)) continue;
      const std::string& reason = device.trouble.empty() ? device.health.drain() : device.trouble;
      if (reason.empty()) return "";
      reasons.push_back(absl::StrCat(name, " of worker ", session.worker, ": ", reason));
    }
  }
  return absl::StrJoin(reasons, "; ");
}

bool WorkerTable::AnyFits(const Target& code, v1::TimingProtocol protocol) const {
  for (const auto& [id, session] : sessions_) {
    for (const auto& [name, device] : session.devices) {
      if (device.CanMeasure(code, protocol)) return true;
    }
  }
  return false;
}

int64_t WorkerTable::CountBuilds(const Target& code) const {
  int64_t builds = 0;
  for (const auto& [id, session] : sessions_) {
    const bool fits =
        session.builder && session.builder->drain().empty() && session.BuildsFor(PrintTarget(code));
    builds += fits ? session.builder->at_once : 0;
  }
  return std::min(builds, kBuildsOfDevice * CountFitting(code));
}

int64_t WorkerTable::CountFitting(const Target& code) const {
  int64_t devices = 0;
  std::string why;
  for (const auto& [text, kind] : kinds_) {
    if (IsMeasurableOn(code, kind.target, &why)) devices += kind.devices;
  }
  return devices;
}

}  // namespace mycc
