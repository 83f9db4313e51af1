// Throughputs per second of each GPU family: constants for the default choices of rules and for the analytic
// model. Multiprocessors, shared memory and L2 size come from the target. The numbers are round, because they
// only have to order candidates. Pure functions.
#pragma once

#include <string_view>

#include "codegen/target/target.h"

namespace mycc {

struct GpuRow {
  std::string_view arch;   // "sm_90a", a prefix of the target's
  std::string_view model;  // stands in the target's model, or empty
  double ghz;
  double dram_bytes_per_second;  // sustained, reading and writing
  double l2_bytes_per_second;
  double fma_per_cycle;  // of one SM: f32 lanes
  double f64_per_cycle;
  double threads_per_sm;
  double dram_seconds;  // latency of one load that misses L2
};

// The row of the target's arch and model; a cautious one where it is unknown.
const GpuRow& GpuRowOf(const Target& target);

inline constexpr double kRegisterFile = 65536;  // 32-bit registers of an SM

// Limits and widths of one target, derived once.
struct GpuMachine {
  explicit GpuMachine(const Target& target);

  GpuRow row;
  Target target;
  double sms;
  double shared_bytes;        // of one block, at most
  double shared_bytes_of_sm;  // of all blocks on one SM
  double l2_bytes;
  double launch_seconds;  // of a further kernel of a call
};

}  // namespace mycc
