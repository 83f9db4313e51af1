// Throughputs per cycle of each CPU family: constants for the default choices of rules and for the analytic
// model. Cache sizes, vector width and registers come from the target. The numbers are round, because they
// only have to order candidates. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/target/target.h"
#include "tuner/space/gpu_machine.h"

namespace mycc {

struct MachineRow {
  std::string_view family;      // a prefix of LLVM's mcpu names
  double ghz;                   // under vector load
  double fma_per_cycle;         // vector multiply-adds, and other float arithmetic
  double fma_latency;           // cycles
  double loads_per_cycle;       // vector loads that hit L1
  double broadcasts_per_cycle;  // loads of one element for all lanes, from rows that lie apart: they meet in
                                // the same bank
  double stores_per_cycle;
  double l2_bytes_per_cycle;  // sustained from L2, for one core
  double l3_bytes_per_cycle;
  double dram_bytes_per_cycle;  // one core; all cores together reach about four times this
                                // (Machine::dram_threads)
  double l3_bytes;              // that one team of threads can use
  double gather_cycles;         // for each element that is loaded or stored on its own
};

// The row of the target's family; a cautious one where the family is unknown.
const MachineRow& MachineOf(const Target& target);

// The seconds to start and end a parallel region of that number of threads, of any family.
double RegionSeconds(double threads);

// Limits and widths of one target, derived once. Micro-benchmarks may replace the figures of its family
// (tuner/cost/machine_constants.h).
struct Machine {
  explicit Machine(const Target& target);

  MachineRow row;
  double vector_bytes;
  double registers;  // vector registers
  double l1_bytes, l2_bytes, l3_bytes;
  double threads;
  // The number of single threads whose rates add up to the rate of all: in arithmetic, and from each level.
  double core_threads, l2_threads, l3_threads, dram_threads;
  double region_seconds;          // to start and end a parallel region of all threads
  std::optional<GpuMachine> gpu;  // of a CUDA target; the members above then mean nothing
};

// The figures that measurements may replace, as a text: machines of one target with equal texts are equal.
std::string FiguresText(const Machine& machine);

}  // namespace mycc
