#include "mycc/launch_counts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/passes/passes.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "tuner/cost/analytic.h"
#include "tuner/cost/nest.h"

namespace mycc {
namespace {

// The sums of one launch's blocks: cycles of one SM, bytes of all.
struct LaunchCounts {
  double cycles = 0, dram = 0, l2 = 0, shared = 0, arithmetic = 0, issue = 0;
  double dram_bytes = 0, l2_bytes = 0;
  double waves = 0, blocks = 0;
  double coalescing = 1, conflicts = 1;  // the worst of its parts
  MmaSeconds mma;
};

void Add(const BlockCost& cost, LaunchCounts* launch) {
  launch->cycles += cost.cycles;
  launch->dram += cost.dram;
  launch->l2 += cost.l2;
  launch->shared += cost.loads;
  launch->arithmetic += cost.arithmetic;
  launch->issue += cost.issue;
  launch->dram_bytes += cost.dram_bytes;
  launch->l2_bytes += cost.l2_bytes;
  launch->waves = std::max(launch->waves, cost.gpu.waves);
  launch->blocks = std::max(launch->blocks, cost.gpu.blocks);
  launch->coalescing = std::min(launch->coalescing, cost.gpu.coalescing);
  launch->conflicts = std::max(launch->conflicts, cost.gpu.conflicts);
  launch->mma = cost.gpu.mma;
}

// The largest of the resources; what none of them is half of waits for latencies.
std::string LimitOf(const std::vector<std::pair<double, const char*>>& resources, double all) {
  constexpr double kMuch = 0.5;
  const auto& largest = *std::ranges::max_element(resources);
  return absl::StrCat("limited by ", largest.first < kMuch * all ? "latency" : largest.second);
}

std::string Microseconds(double seconds) { return absl::StrFormat("%.3g us", seconds * 1e6); }

// On tensor cores a tile's operands are no accesses of threads.
std::string MmaText(const LaunchCounts& launch) {
  const MmaSeconds& mma = launch.mma;
  return absl::StrFormat(
      "%s: DRAM %.4g MB in %s, products %s, operands to shared memory %s, waiting for copies %s, begin and "
      "end %s; %.3g waves of %.0f tiles; %s",
      Microseconds(mma.seconds), launch.dram_bytes / 1e6, Microseconds(mma.memory),
      Microseconds(mma.multiply), Microseconds(mma.feed), Microseconds(mma.wait), Microseconds(mma.ends),
      launch.waves, launch.blocks,
      LimitOf({{mma.memory, "DRAM"},
               {mma.multiply, "products"},
               {mma.feed, "operands to shared memory"},
               {mma.wait, "waiting for copies"},
               {mma.ends, "begin and end"}},
              mma.seconds));
}

std::string CountsText(const LaunchCounts& launch, double ghz) {
  if (launch.mma.seconds > 0) return MmaText(launch);
  const auto us = [&](double cycles) { return Microseconds(cycles / (ghz * 1e9)); };
  std::string text = absl::StrFormat(
      "%s: DRAM %.4g MB in %s, L2 %.4g MB in %s, shared memory %s, arithmetic %s, issue %s; %.3g waves of "
      "%.0f blocks",
      us(launch.cycles), launch.dram_bytes / 1e6, us(launch.dram), launch.l2_bytes / 1e6, us(launch.l2),
      us(launch.shared), us(launch.arithmetic), us(launch.issue), launch.waves, launch.blocks);
  if (launch.coalescing < 0.995)
    absl::StrAppendFormat(&text, "; memory accesses use %.0f %% of the bytes that they move",
                          100 * launch.coalescing);
  if (launch.conflicts > 1.005)
    absl::StrAppendFormat(&text, "; accesses of shared memory take %.1f turns", launch.conflicts);
  return absl::StrCat(text, "; ",
                      LimitOf({{launch.dram, "DRAM"},
                               {launch.l2, "L2"},
                               {launch.shared, "shared memory"},
                               {launch.arithmetic, "arithmetic"},
                               {launch.issue, "issue"}},
                              launch.cycles));
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LaunchCountsOf(const Workload& workload,
                                                                                const Target& target,
                                                                                const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(Canonicalize(workload), target, trace));
  // Nests that the schedule left unbound have threads in the kernel.
  Function bound = schedule.function();
  bound.body = BindNests(bound.body);
  const FunctionNest nest = AnalyzeNest(bound);
  const Machine machine(target);
  const Cost cost = EstimateCost(nest, machine);
  std::map<int, LaunchCounts> launches;  // by the statement at the root
  for (size_t b = 0; b < nest.blocks.size(); ++b) {
    if (!nest.blocks[b].ahead_of_time) Add(cost.blocks[b], &launches[nest.blocks[b].group]);
  }
  std::vector<std::pair<std::string, std::string>> counts;
  for (const auto& [group, launch] : launches) {
    counts.emplace_back(absl::StrCat("counts ", counts.size() + 1), CountsText(launch, machine.gpu->row.ghz));
  }
  return counts;
}

}  // namespace mycc
