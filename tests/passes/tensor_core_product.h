// A product in schedules of tensor cores, small enough to be interpreted dozens of times: for tests of the
// passes that lower them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/passes/lower.h"
#include "codegen/passes/passes.h"
#include "gtest/gtest.h"
#include "tests/passes/lowered_function.h"
#include "tests/passes/tensor_core_traces.h"
#include "tests/schedule/testing.h"

namespace mycc {

inline constexpr double kTolerance = 2e-3;  // of sums in f16

// Four tiles of two steps, the last of each dimension cut off.
inline constexpr char kGemm[] = R"(workload g(a: f16[80,48], b: f16[24,48], d: f16[24]) -> (c: f16[80,24]) {
  s[i,j]: f32[80,24] = sum[k:48](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(max(s[i,j] + f32(d[j]), 0.0))
})";

// A role copies by TMA, a warpgroup multiplies 64x16x32 and sends its results through shared memory. `deal`
// says how blocks share the four tiles.
inline std::string Ring(const std::string& deal) {
  return WarpSpecializedTrace({64, 16, 32}, /*warpgroups=*/1, /*slots=*/2, deal);
}
// Three blocks have the four tiles.
inline std::string WarpSpecialized() { return Ring("persist(t3.a0.0+a1.0, 3)\n"); }

// All threads copy by cp.async, four warps multiply.
inline std::string Multistage() { return MultistageTrace({32, 16, 16}); }

// Two groups of warps take turns, each on two of one block's four tiles.
inline std::string PingPong() { return Ring("persist(t3.a0.0+a1.0, 1)\npingpong(t3.a0.0+a1.0, 2)\n"); }

// Two blocks that differ in their rows share the tile of t1, in two rounds.
inline std::string InClusters() { return InClustersOfTwo(Ring("persist(t3.a0.0+a1.0, 1)\n")); }

// The last of four tiles is shared out by steps.
inline std::string StreamK() { return Ring("stream_k(t3.a0.0+a1.0, 3, 1, 2)\n"); }

inline Function Scheduled(const std::string& steps) {
  const auto trace = ParseTrace(absl::StrCat("v1\n", steps));
  EXPECT_TRUE(trace.ok()) << trace.status();
  const auto schedule = Replay(CanonicalWorkload(kGemm), TestGpu(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule->function();
}

inline absl::StatusOr<Function> Lowered(const std::string& steps) {
  const absl::StatusOr<LoweredFunction> lowered = Lower(Scheduled(steps), TestGpu());
  if (!lowered.ok()) return lowered.status();
  return WholeFunction(*lowered);
}

inline absl::Status Meaning(const Function& function) {
  return CheckFunction(CanonicalWorkload(kGemm), function, kTolerance);
}

inline Stmt Nothing() { return std::make_shared<Seq>(std::vector<Stmt>{}); }

// The passes that make tiles, pipelines, fragments and asynchronous products of simplified loops.
using TilePass = absl::StatusOr<Stmt> (*)(const Stmt& body);
inline constexpr std::pair<const char*, TilePass> kTilePasses[] = {
    {"tensorize_tiles", TensorizeTiles},
    {"pipeline_loops", PipelineLoops},
    {"fragment_loops", [](const Stmt& body) { return FragmentLoopsOf(body, TestGpu()); }},
    {"overlap_products", [](const Stmt& body) -> absl::StatusOr<Stmt> { return OverlapProducts(body); }},
};

// The function as the passes before `name` leave it.
inline Function Before(const std::string& name, const std::string& steps) {
  Function function = Scheduled(steps);
  function.body = SimplifyStmts(LowerBlocks(function.body).value());
  for (const auto& [pass, run] : kTilePasses) {
    if (pass == name) break;
    function.body = run(function.body).value();
  }
  return function;
}

}  // namespace mycc
