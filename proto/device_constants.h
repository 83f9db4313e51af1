// The constants of a device, which its worker measures at its first start: their names, units, meanings, and
// what is plausible. Rates are the best that the device reached, times the shortest. They serve the search's
// predictions alone, and nothing here shapes code. Thread rule: pure functions and constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "proto/records.pb.h"

namespace mycc {

// The version of the list and of the micro-benchmarks (worker/cpu_constants.h, worker/gpu_constants.h): a
// change of either needs the next one. Constants of two versions do not compare.
inline constexpr uint32_t kConstantsVersion = 2;

// "One thread": alone, on a core. "All threads": of the device's target, at once; of a GPU there is this
// only.
inline constexpr char kThreadsConstant[] = "threads";
inline constexpr char kClockConstant[] = "clock_cycles_per_second";
inline constexpr char kPeakOfThread[] = "peak_flops_per_second_one_thread";
inline constexpr char kPeakOfAll[] = "peak_flops_per_second_all_threads";
inline constexpr char kFmaLatency[] = "fma_latency_seconds";
inline constexpr char kL1OfThread[] = "l1_bytes_per_second_one_thread";
inline constexpr char kL2OfThread[] = "l2_bytes_per_second_one_thread";
inline constexpr char kL2OfAll[] = "l2_bytes_per_second_all_threads";
inline constexpr char kL3OfThread[] = "l3_bytes_per_second_one_thread";
inline constexpr char kL3OfAll[] = "l3_bytes_per_second_all_threads";
inline constexpr char kMemoryOfThread[] = "memory_bytes_per_second_one_thread";
inline constexpr char kMemoryOfAll[] = "memory_bytes_per_second_all_threads";
inline constexpr char kMemoryLatency[] = "memory_latency_seconds";
inline constexpr char kLaunchTime[] = "launch_seconds";

struct DeviceConstant {
  std::string_view name;
  std::string_view unit;
  double least, most;  // of any device that there may be
  std::string_view meaning;
};

// All that there are, in the order in which people read them.
absl::Span<const DeviceConstant> DeviceConstantRows();

// The value of that name; 0 where there is none.
double ConstantOf(const v1::DeviceConstants& constants, std::string_view name);

// The constants without those that cannot be right: of an unknown name, not a number, or outside of what any
// device may have. `refused` gets a line for each of the first few, saying what was expected. Nothing is left
// of another version, or of too many values.
v1::DeviceConstants SoundConstants(const v1::DeviceConstants& told, std::vector<std::string>* refused);

}  // namespace mycc
