// Reads a GPU's state through NVML: clocks, temperature, power, throttling, other users. NVML is opened at
// run time; without it, nothing is known. Thread rule: thread-compatible.
#pragma once

#include <string>

#include "proto/records.pb.h"

namespace mycc {

// A GPU, by its UUID ("GPU-6d1f...").
class GpuHealth {
 public:
  explicit GpuHealth(const std::string& uuid);

  bool known() const { return device_ != nullptr; }
  // The driver's version; empty where unknown.
  const std::string& driver() const { return driver_; }
  // NVML's handle; null where nothing is known.
  void* device() const { return device_; }
  // Fills in the values that change from moment to moment, and the power limit.
  void Describe(v1::DeviceInfo* info) const;

 private:
  void* device_ = nullptr;
  std::string driver_;
};

// A function of NVML by its name, for what GpuHealth does not read; null where NVML or the function is
// missing.
void* NvmlFunction(const char* name);

}  // namespace mycc
