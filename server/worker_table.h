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
    std::string trouble;        // as the worker says: why it stands still although it has work
    std::string told;           // why it gets no work, as the worker knows
    v1::DeviceReading reading;  // the last one; empty: none yet
  };
  struct Session {
    std::string id;
    std::string worker;
    std::string instance;  // its process; empty for a worker that does not say
    bool names_what_it_holds = false;
    v1::Toolchain toolchain;
    v1::HostState host;  // when it registered
    std::map<std::string, Device> devices;
    std::vector<v1::LeaseId> revoked;  // to be told with the next answer
    double last_heard = 0;
    int64_t refused = 0;  // reports, results and held leases
  };
  // A trial that ended: its comparable trials, and its target.
  struct Ended {
    std::string line;
    const Target& code;
  };

  // A session that is silent for longer than `lease_seconds` gives its name away. `log` hears of a
  // device that is drained or gets work again; it may be null.
  explicit WorkerTable(double lease_seconds, EventLog log = nullptr)
      : lease_seconds_(lease_seconds), log_(std::move(log)) {}

  // InvalidArgument when a target does not parse, or there is no device; AlreadyExists when another process
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
  std::string StandstillOf(const Target& code) const;
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
  // A healthy device of another worker, whose name is not among `except`, can measure `code` now.
  bool HasElsewhere(const Target& code, const std::vector<std::string>& except, double now) const;

  // The instructions for the worker; each revocation once.
  v1::Instructions TakeInstructions(Session* session);

  // `leases` counts what a session holds.
  std::vector<v1::DeviceStatus> Status(
      double now, const std::function<int64_t(const std::string& session)>& leases) const;
  bool AnyFits(const Target& code) const;

 private:
  // Why the process cannot have the name; empty: it can.
  std::string Occupied(const Session& earlier, const v1::RegisterRequest& request, double now) const;
  Session* FindWorker(const std::string& name);
  bool HasHealthyRival(const Device& device, double now) const;
  std::string TroubleOf(const Device& device, double now) const;

  const double lease_seconds_;
  const EventLog log_;
  std::map<std::string, Session> sessions_;
  std::map<std::string, std::string> by_name_;              // sessions
  std::set<std::pair<double, std::string>> by_last_heard_;  // likewise
  FailureWatch failures_;
  uint64_t registered_ = 0;
};

}  // namespace mycc
