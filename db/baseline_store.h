// Stores how long the baseline kernel of each device took when the device was last healthy. Later times are
// compared with it, to notice throttling or a busy neighbour, and to compare devices of one model. Thread
// rule: thread-safe; each call is one transaction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

struct Baseline {
  std::string worker;
  std::string device;
  std::string kernel;  // which baseline kernel
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
  std::string device_model;
  double seconds = 0;
  int64_t measured_unix_micros = 0;
};

class BaselineStore {
 public:
  // REQUIRES: the log outlives the store.
  explicit BaselineStore(TuningLog* log) : database_(log->database()) {}

  // Replaces the earlier baseline of the same device and kernel.
  absl::Status Save(const Baseline& baseline);
  // By worker, device, kernel and protocol.
  absl::StatusOr<std::vector<Baseline>> List() const;

 private:
  Database* const database_;
};

}  // namespace mycc
