// Attention over keys that are one tile, scheduled by hand: one kernel in which the second product takes its
// left operand from the registers of the first, or from shared memory.
#pragma once

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"

namespace mycc {

// t0, t1 and t2 are q, k and v; t3 the scores, t4 their maxima, t5 the weights, t6 the same in 16 bits, t7
// the second product, t8 the sums of weights, t9 the result. The last tile of rows is cut off.
inline constexpr char kAttention[] =
    R"(workload a(q: bf16[100,64], k: bf16[64,64], v: bf16[64,64]) -> (o: bf16[100,64]) {
  s[i,j]: f32[100,64] = sum[c:64](f32(q[i,c]) * f32(k[j,c]))
  m[i]: f32[100] = max[j:64](s[i,j])
  e[i,j]: f32[100,64] = exp(s[i,j] - m[i])
  l[i]: f32[100] = sum[j:64](e[i,j])
  p[i,j]: bf16[100,64] = bf16(e[i,j])
  a[i,d]: f32[100,64] = sum[j:64](f32(p[i,j]) * f32(v[j,d]))
  o[i,d] = bf16(a[i,d] / l[i])
})";

// A tile of 64 rows in loop `loop`, multiplied by a grid of warps or warpgroups. Warps that share rows
// exchange the weights through shared memory.
inline std::string AttentionTile(const std::string& loop, const std::string& instruction, int rows,
                                 int columns) {
  return absl::Substitute(R"(compute_at(t7, $0)
compute_at(t6, $0)
compute_at(t8, $0)
compute_at(t5, $0)
compute_at(t4, $0)
compute_at(t3, $0)
reorder([t7.a0, t7.r0, t7.a1])
cache_write(t3, $0)
cache_write(t7, $0)
stage_shared(t3, t0, $0, shared)
stage_shared(t3, t1, $0, shared)
stage_shared(t7, t2, $0, shared)
layout(t0.s, 0, 128)
layout(t1.s, 0, 128)
layout(t2.s, 0, 128)
$4tensorize_tile(t3.a0, $1, $2, $3)
tensorize_tile(t7.a0, $1, $2, $3)
)",
                          loop, instruction, rows, columns,
                          columns > 1 ? "set_scope(t6, shared)\nlayout(t6, 0, 128)\n" : "");
}

// Four warps, whose threads copy the tiles.
inline std::string AttentionOfWarps(int rows = 4, int columns = 1) {
  std::string steps = "split(t9.a0, [64])\nbind(t9.a0.0, block)\n";
  steps += AttentionTile("t9.a0.0", "mma.bf16", rows, columns);
  for (const auto& [tile, row, column] :
       {std::array{"t0.s", "a0", "r0"}, {"t1.s", "a1", "r0"}, {"t2.s", "r0", "a1"}}) {
    absl::StrAppend(&steps, absl::Substitute(R"(fuse([$0.$1, $0.$2])
split($0.$1+s.$2, [128, 8])
bind($0.$1+s.$2.1, thread)
bind($0.$1+s.$2.2, vector)
)",
                                             tile, row, column));
  }
  return steps;
}

// A warpgroup; a role copies the tiles by TMA, two tiles of rows ahead.
inline std::string AttentionOfAWarpgroup() {
  return absl::StrCat("split(t9.a0, [2, 64])\nbind(t9.a0.0, block)\n",
                      AttentionTile("t9.a0.1", "wgmma.bf16", 1, 1), "pipeline(t9.a0.1, bulk, 2)\n");
}

}  // namespace mycc
