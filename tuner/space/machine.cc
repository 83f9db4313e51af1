#include "tuner/space/machine.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kRegionSeconds = 2e-6, kRegionSecondsOfThread = 2e-7;
constexpr double kUnlimitedThreads = 1e9;  // each adds as much as the first
constexpr double kThreadsThatFillMemory = 4;

// To add a family: a row. The first row whose name begins the target's mcpu is taken, so longer names come
// first.
constexpr MachineRow kCpuRows[] = {
    // family          GHz  FMA  lat  ld   bc   st   L2   L3   DRAM  L3         gather
    {"sapphirerapids", 3.0, 2.0, 4.0, 2.0, 2.0, 2.0, 40.0, 8.0, 4.0, 60 * kMiB, 1.0},
    {"emeraldrapids", 3.0, 2.0, 4.0, 2.0, 2.0, 2.0, 40.0, 8.0, 4.0, 160 * kMiB, 1.0},
    {"graniterapids", 3.0, 2.0, 4.0, 2.0, 2.0, 2.0, 40.0, 8.0, 4.0, 160 * kMiB, 1.0},
    {"icelake", 3.0, 2.0, 4.0, 2.0, 2.0, 2.0, 40.0, 9.0, 4.0, 40 * kMiB, 1.0},
    {"cascadelake", 2.8, 2.0, 4.0, 2.0, 2.0, 1.0, 40.0, 8.0, 4.0, 30 * kMiB, 1.0},
    {"skylake-avx512", 2.8, 2.0, 4.0, 2.0, 2.0, 1.0, 40.0, 8.0, 4.0, 24 * kMiB, 1.0},
    {"skylake", 3.6, 2.0, 4.0, 2.0, 2.0, 1.0, 28.0, 14.0, 6.0, 8 * kMiB, 1.0},
    {"broadwell", 3.2, 2.0, 5.0, 2.0, 2.0, 1.0, 25.0, 12.0, 5.0, 20 * kMiB, 1.3},
    {"haswell", 3.2, 2.0, 5.0, 2.0, 2.0, 1.0, 25.0, 12.0, 5.0, 16 * kMiB, 1.5},
    {"alderlake", 4.6, 2.0, 4.0, 3.0, 3.0, 2.0, 40.0, 12.0, 6.0, 24 * kMiB, 1.0},
    {"znver5", 4.4, 2.0, 4.0, 2.0, 2.0, 1.0, 48.0, 24.0, 7.0, 32 * kMiB, 1.3},
    {"znver4", 3.7, 1.0, 4.0, 1.0, 1.0, 0.5, 32.0, 20.0, 7.0, 32 * kMiB,
     1.3},  // half-width units: one 64-byte operation a cycle
    {"znver3", 3.3, 2.0, 4.0, 2.0, 1.2, 1.0, 32.0, 24.0, 7.0, 32 * kMiB, 1.5},
    {"znver", 3.2, 2.0, 5.0, 2.0, 1.2, 1.0, 28.0, 14.0, 6.0, 16 * kMiB, 1.7},
};
constexpr MachineRow kUnknownCpu = {"", 3.0, 2.0, 4.0, 2.0, 1.5, 1.0, 25.0, 10.0, 5.0, 8 * kMiB, 1.5};

}  // namespace

const MachineRow& MachineOf(const Target& target) {
  for (const MachineRow& row : kCpuRows) {
    if (target.mcpu.compare(0, row.family.size(), row.family) == 0) return row;
  }
  return kUnknownCpu;
}

double RegionSeconds(double threads) { return kRegionSeconds + kRegionSecondsOfThread * threads; }

Machine::Machine(const Target& target)
    : row(MachineOf(target)),
      vector_bytes(VectorBytes(target)),
      registers(VectorRegisters(target)),
      l1_bytes(target.l1d_bytes > 0 ? static_cast<double>(target.l1d_bytes) : 32 << 10),
      l2_bytes(target.l2_bytes > 0 ? static_cast<double>(target.l2_bytes) : 256 << 10),
      l3_bytes(row.l3_bytes),
      threads(std::max(1, target.threads)),
      core_threads(kUnlimitedThreads),
      l2_threads(kUnlimitedThreads),
      l3_threads(kUnlimitedThreads),
      dram_threads(kThreadsThatFillMemory),
      region_seconds(RegionSeconds(threads)) {
  if (target.kind == TargetKind::kCuda) gpu.emplace(target);
}

std::string FiguresText(const Machine& machine) {
  std::vector<double> figures;
  if (machine.gpu) {
    const GpuRow& row = machine.gpu->row;
    figures = {row.ghz, row.dram_bytes_per_second, row.l2_bytes_per_second, row.dram_seconds,
               machine.gpu->launch_seconds};
  } else {
    const MachineRow& row = machine.row;
    figures = {row.ghz,
               row.fma_per_cycle,
               row.fma_latency,
               row.l2_bytes_per_cycle,
               row.l3_bytes_per_cycle,
               row.dram_bytes_per_cycle,
               machine.core_threads,
               machine.l2_threads,
               machine.l3_threads,
               machine.dram_threads,
               machine.region_seconds};
  }
  return absl::StrJoin(
      figures, " ", [](std::string* text, double figure) { absl::StrAppendFormat(text, "%.17g", figure); });
}

}  // namespace mycc
