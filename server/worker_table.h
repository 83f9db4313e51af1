// The workers that are registered: what they offer, when they were last heard, how healthy their devices are,
// and what they should be told. Thread rule: thread-compatible. Time is an argument.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/baseline_watch.h"

namespace mycc {

// NotFound, in words: the worker registers again.
absl::Status UnknownSession(const std::string& session);

class WorkerTable {
 public:
  struct Device {
    v1::DeviceOffer offer;
    Target target;
    BaselineWatch baseline;
    int64_t trials = 0;
    int lost_in_a_row = 0;  // results that speak of a lost device or worker
    std::string drain;      // why it gets no more work; empty: it does
    // A drained device gets one trial now and then, which shows whether it has recovered.
    double retry_at = 0;
  };
  struct Session {
    std::string id;
    std::string worker;
    v1::Toolchain toolchain;
    v1::HostState host;  // when it registered
    std::map<std::string, Device> devices;
    std::vector<v1::LeaseId> revoked;  // to be told with the next answer
    double last_heard = 0;
  };

  // InvalidArgument when a target does not parse, or there is no device. Takes the place of the worker's
  // earlier session, which is moved into `replaced`. `usual` knows the usual baseline of a device; it may be
  // null.
  absl::StatusOr<Session*> Register(const v1::RegisterRequest& request, double now,
                                    std::optional<Session>* replaced,
                                    const std::function<double(const v1::DeviceOffer&)>& usual);
  // NotFound when the session is unknown. It was heard now.
  absl::StatusOr<Session*> Hear(const std::string& session, double now);
  Session* Find(const std::string& session);
  // Whether a worker of this name is registered.
  bool Knows(const std::string& worker) const;
  void Remove(const std::string& session) { sessions_.erase(session); }
  // The sessions that were silent for longer than `seconds`, forgotten.
  std::vector<Session> RemoveSilent(double now, double seconds);

  // Judges a device by a result of it. A device is drained for its baseline only when another healthy one can
  // run its target: a slow device is better than none.
  void Judge(Session* session, const std::string& device, const v1::MeasureResult& result, double now);
  // Whether the device may lease now, and how much of `wanted`.
  int Allowance(Device* device, int wanted, double now);

  // What to tell the worker; each revocation once.
  v1::Instructions TakeInstructions(Session* session);

  // `leases` counts what a session holds.
  std::vector<v1::DeviceStatus> Status(
      double now, const std::function<int64_t(const std::string& session)>& leases) const;
  bool AnyFits(const Target& code) const;

 private:
  bool HasHealthyRival(const Device& device) const;

  std::map<std::string, Session> sessions_;
  uint64_t registered_ = 0;
};

}  // namespace mycc
