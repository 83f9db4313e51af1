// Stores the constants of devices (proto/device_constants.h): each device's own, by version of the
// micro-benchmarks. A device is a host, its device, its model and its target. The newest kMostDevices are
// kept. Thread rule: thread-safe; each call is one transaction.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/records.pb.h"

namespace mycc {

struct StoredConstants {
  std::string host;
  std::string device;  // "cpu", "cuda:0"
  std::string model;   // as the device calls itself
  std::string target;  // text
  std::string worker;  // that measured them
  v1::DeviceConstants constants;
  int64_t measured_unix_micros = 0;

  using Key = std::tuple<std::string, std::string, std::string, std::string, uint32_t>;
  Key key() const { return {host, device, model, target, constants.version()}; }
};

class ConstantsStore {
 public:
  static constexpr int64_t kMostDevices = 4096;

  // REQUIRES: the log outlives the store.
  explicit ConstantsStore(const TuningLog* log) : database_(log->database()) {}

  // Replaces the earlier ones of the same device and version. InvalidArgument for none, and for one that is
  // no positive number.
  absl::Status Save(const StoredConstants& constants);
  // By host, device, model, target and version. A damaged row is left out, so that its device is measured
  // again.
  absl::StatusOr<std::vector<StoredConstants>> List() const;
  // Forgets all of them; returns how many there were.
  absl::StatusOr<int64_t> Clear();

 private:
  Database* const database_;
};

}  // namespace mycc
