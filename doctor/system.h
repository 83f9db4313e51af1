// The questions that a doctor asks the operating system by calls. A test may answer each of them itself.
// Files of /proc, /sys and /dev are read through host_files.h. Thread rule: the functions are re-entrant.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "doctor/gpu_state.h"

namespace mycc {

struct System {
  static System Real();

  // The CPUs that this process may use.
  std::function<int()> usable_cpus;
  // Whether the kernel's clock is kept by a time service; none where the kernel does not tell.
  std::function<std::optional<bool>()> clock_is_kept;
  // The measures of a candidate's confinement that the kernel refuses, found by trying, in a child.
  std::function<absl::StatusOr<std::vector<std::string>>()> missing_confinement;
  // Bytes that this user may still write in the folder.
  std::function<absl::StatusOr<int64_t>(const std::string& folder)> free_bytes;
  // Seconds of a few writes of a page with fdatasync, in a file of the folder that is removed afterwards.
  std::function<absl::StatusOr<std::vector<double>>(const std::string& folder)> sync_seconds;
  // Binds to "host:port", and lets go. Unavailable: the system's reason.
  std::function<absl::Status(const std::string& host, const std::string& port)> bind;
  std::function<int64_t()> unix_seconds;
  std::function<absl::StatusOr<int>()> count_gpus;
  std::function<absl::StatusOr<GpuState>(int ordinal)> gpu;
  std::function<absl::StatusOr<std::string>()> gpu_compiler;  // "nvrtc-13.0"
};

}  // namespace mycc
