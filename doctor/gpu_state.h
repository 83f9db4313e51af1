// The state of a GPU as its operator sees it, read through NVML: settings, errors, and what slows it down
// now. Thread rule: ReadGpuState is re-entrant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

// A value is missing where the driver, or NVML, does not tell it.
struct GpuState {
  std::string model;   // "NVIDIA H200"
  std::string driver;  // "580.95.05"; empty where NVML is missing
  int cuda = 0;        // the newest CUDA that the driver supports: 13000 for 13.0
  std::string pci_bus_id;
  std::optional<bool> is_persistent;
  std::optional<uint32_t> celsius;
  std::vector<std::string> slowed_by;           // "power cap", ...
  uint32_t processes = 0;                       // that compute on it now
  std::optional<uint64_t> uncorrected_errors;   // of its memory, since the driver was loaded
  std::optional<bool> has_pending_page;         // a damaged page that the next reset replaces
  std::optional<uint32_t> sm_mhz, most_sm_mhz;  // its application clock, and the highest one
  std::optional<bool> computes_for_one_alone;   // EXCLUSIVE_PROCESS or PROHIBITED
};

// NotFound: there is no driver, or no GPU of that number.
absl::StatusOr<GpuState> ReadGpuState(int ordinal);

}  // namespace mycc
