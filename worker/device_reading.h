// A device's state between trials: temperature, clock, power, and what holds its clocks back. A CPU is read
// through the kernel's files, a GPU through NVML. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <string>

#include "proto/worker.pb.h"
#include "worker/nvml.h"

namespace mycc {

// This host's CPU. Values that the system does not tell are left out.
class CpuReader {
 public:
  // `sys`: where the kernel shows its devices; a test gives a folder of its own.
  explicit CpuReader(std::string sys = "/sys") : sys_(std::move(sys)) {}

  v1::DeviceReading Read();

 private:
  const std::string sys_;
  int64_t throttled_ = -1;  // times in all, at the last reading; -1: unknown
};

class GpuReader {
 public:
  explicit GpuReader(const std::string& uuid, std::string device)
      : health_(uuid), device_(std::move(device)) {}

  v1::DeviceReading Read() const;

 private:
  const GpuHealth health_;
  const std::string device_;
};

}  // namespace mycc
