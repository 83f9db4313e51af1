// Hand-written schedules that the cost model is tested on.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "gtest/gtest.h"

namespace mycc {

inline Target Avx2Target(int threads = 1) {
  Target target;
  target.mcpu = "znver3";
  target.l1d_bytes = 32 << 10;
  target.l2_bytes = 512 << 10;
  target.threads = threads;
  return target;
}

inline Target Avx512Target(int threads = 1) {
  Target target;
  target.mcpu = "sapphirerapids";
  target.l1d_bytes = 48 << 10;
  target.l2_bytes = 2 << 20;
  target.threads = threads;
  return target;
}

inline Schedule ScheduleOf(const std::string& workload_text, const std::string& steps, const Target& target) {
  const auto workload = ParseWorkload(workload_text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status();
  const auto trace = ParseTrace("v1\n" + steps);
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto schedule = Replay(Canonicalize(*workload), target, *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

inline std::string GemmText(int m, int n, int k) {
  return absl::StrCat("workload gemm(a: f32[", m, ",", k, "], b: const f32[", k, ",", n, "]) -> (c: f32[", m,
                      ",", n, "]) { c[i,j] = sum[k:", k, "](a[i,k] * b[k,j]) }");
}

// Register tiles of mr x nr, k whole; mt and nt tiles to a block.
inline std::string TiledGemmSteps(int mr, int nr, int mt, int nt, bool parallel, bool packed,
                                  const std::string& instruction = "fma.f32") {
  std::string steps =
      absl::StrCat("split(t2.a0, [", mt, ", ", mr, "])\nsplit(t2.a1, [", nt, ", ", nr, "])\n",
                   "reorder([t2.a0.0, t2.a1.0, t2.a1.1, t2.a0.1, t2.r0, t2.a0.2, t2.a1.2])\n");
  if (parallel) steps += "bind(t2.a0.0, parallel)\n";
  if (packed)
    absl::StrAppend(&steps, "cache_read(t1, t2, root, packed)\npack(t1.r, [1/", nr, ", 0, 1%", nr, "])\n");
  steps += "cache_write(t2, t2.a0.1)\n";
  if (instruction.empty()) {
    steps += "bind(t2.a0.2, unroll)\nbind(t2.a1.2, vector)\n";
  } else {
    absl::StrAppend(&steps, "tensorize(t2.r0, ", instruction, ")\n");
  }
  steps +=
      "bind(t2.i.a0.2, unroll)\nbind(t2.i.a1.2, vector)\nbind(t2.w.a0.2, unroll)\nbind(t2.w.a1.2, vector)\n";
  return steps;
}

}  // namespace mycc
