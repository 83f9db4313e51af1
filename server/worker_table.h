// The registered workers: their devices, when they were last heard, the health of their devices, and messages
// for them. A worker's name belongs to one process at a time. Thread rule: thread-compatible. Time is an
// argument.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "codegen/target/target.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/device_health.h"
#include "server/failure_watch.h"

namespace mycc {

// NotFound, in words: the worker registers again.
absl::Status UnknownSession(const std::string& session);

class WorkerTable {
 public:
  struct Device {
    v1::DeviceOffer offer;
    Target target;
    DeviceHealth health;
    std::string trouble;                     // as the worker says: why it stands still although it has work
    std::string told;                        // why it gets no work, as the worker knows
    v1::DeviceReading reading;               // the last one; empty: none yet
    std::set<v1::TimingProtocol> protocols;  // that it times by

    // Whether it can measure code of this target by this protocol; UNSPECIFIED: by some protocol.
    bool CanMeasure(const Target& code, v1::TimingProtocol protocol) const;
  };
  // A worker that builds for others.
  struct Builder {
    std::vector<std::string> archs;  // "sm_90a": that it builds for
    uint32_t at_once = 0;            // builds
    DeviceHealth builds;             // whether its failures are believed, and why it gets no orders
    DeviceHealth code;               // of what it has built, as others measured it
    int64_t finished = 0;            // builds
    double asked = 0;                // for orders, the last time
    std::string told;                // why it gets no orders, as it knows

    // Empty: it gets orders.
    const std::string& drain() const { return builds.drain().empty() ? code.drain() : builds.drain(); }
  };
  struct Session {
    std::string id;
    std::string worker;
    std::string instance;  // its process; empty for a worker that does not say
    bool names_what_it_holds = false;
    v1::Toolchain toolchain;
    v1::HostState host;   // when it registered
    std::string version;  // of its program; empty for a worker that does not say
    v1::WorkerRole role = v1::WORKER_ROLE_BOTH;
    std::map<std::string, Device> devices;  // none of a worker that builds for others
    std::optional<Builder> builder;
    std::vector<v1::LeaseId> revoked;  // to be told with the next answer
    double last_heard = 0;
    int64_t refused = 0;  // reports, results and held leases

    bool BuildsFor(const std::string& target) const;  // text
  };
  // A trial that ended: its comparable trials, and its target.
  struct Ended {
    std::string line;
    const Target& code;
    v1::TimingProtocol protocol;
  };

  // A session that is silent for longer than `lease_seconds` gives its name away. `log` hears of a
  // device that is drained or gets work again; it may be null.
  explicit WorkerTable(double lease_seconds, EventLog log = nullptr)
      : lease_seconds_(lease_seconds), log_(std::move(log)) {}

  // InvalidArgument when a target does not parse, or there is neither a device nor a target to build for;
  // AlreadyExists when another process
  // has the name. Takes the place of the worker's earlier session, which is moved into `replaced`. `usual`
  // knows the usual baseline of a device; it may be null.
  absl::StatusOr<Session*> Register(const v1::RegisterRequest& request, double now,
                                    std::optional<Session>* replaced,
                                    const std::function<double(const v1::DeviceOffer&)>& usual);
  // NotFound when the session is unknown. The session counts as heard now.
  absl::StatusOr<Session*> Renew(const std::string& session, double now);
  Session* Find(const std::string& session);
  const Session* Find(const std::string& session) const;
  // Why no device that can measure `code` does so; empty: one does, or there is none.
  std::string StandstillOf(const Target& code, v1::TimingProtocol protocol) const;
  // Whether a worker of this name is registered.
  bool Knows(const std::string& worker) const { return by_name_.contains(worker); }
  void Remove(const std::string& session);
  // Forgets and returns the sessions that were silent for longer than `seconds`.
  std::vector<Session> RemoveSilent(double now, double seconds);

  // A trial's result on a device, which may be drained for it, or get work again.
  void Judge(Session* session, const std::string& device, const Ended& ended, const v1::MeasureResult& result,
             double now);
  // A report says nothing about the candidate.
  void JudgeLoss(Session* session, const std::string& device, const std::string& error, double now);
  // A failure was tried elsewhere: it failed there too (`confirmed`), or did not, as `evidence` says.
  void JudgeAgain(const std::string& worker, const std::string& device, bool confirmed,
                  const std::string& evidence, double now);
  // The device's failure on the line counts without a second opinion: the device has shown that it can
  // measure, and such failures are usual elsewhere.
  bool IsBelieved(const Session& session, const std::string& device, const std::string& line) const;
  // A healthy device of another worker, whose name is not among `except`, can measure `code` by `protocol`
  // now.
  bool HasElsewhere(const Target& code, v1::TimingProtocol protocol, const std::vector<std::string>& except,
                    double now) const;

  // A worker that builds for the target (text) and is not among `except` lives, is not drained, and asks for
  // orders.
  bool HasBuilder(const std::string& target, const std::vector<std::string>& except, double now) const;
  // The builder of this name; null when it has gone.
  Builder* FindBuilder(const std::string& worker);

  // The instructions for the worker; each revocation once.
  v1::Instructions TakeInstructions(Session* session);

  // `leases` counts what a session holds.
  std::vector<v1::DeviceStatus> Status(
      double now, const std::function<int64_t(const std::string& session)>& leases) const;
  bool AnyFits(const Target& code, v1::TimingProtocol protocol) const;
  // The number of devices that can measure `code`, and of all devices.
  int64_t CountFitting(const Target& code) const;
  int64_t num_devices() const { return num_devices_; }
  // The number of builds at once of those who build for `code`; no more than its devices have use for.
  int64_t CountBuilds(const Target& code) const;

 private:
  // Why the process cannot have the name; empty: it can.
  std::string Occupied(const Session& earlier, const v1::RegisterRequest& request, double now) const;
  Session* FindWorker(const std::string& name);
  bool HasHealthyRival(const Device& device, double now) const;
  std::string TroubleOf(const Device& device, double now) const;
  // Why a worker that leaves building to others builds itself; empty: it does not.
  std::string BuildsItself(const Session& session, const Device& device, double now) const;
  // A worker is told once that it gets no work, or gets some again.
  void Tell(const Session& session, const std::string& what, const std::string& drain,
            std::string* told) const;

  const double lease_seconds_;
  const EventLog log_;
  std::map<std::string, Session> sessions_;
  std::map<std::string, std::string> by_name_;              // sessions
  std::set<std::pair<double, std::string>> by_last_heard_;  // likewise
  struct Kind {
    Target target;
    int64_t devices = 0;
  };
  std::map<std::string, Kind> kinds_;  // of the devices, by the texts of their targets
  int64_t num_devices_ = 0;
  FailureWatch failures_;
  uint64_t registered_ = 0;
};

}  // namespace mycc
