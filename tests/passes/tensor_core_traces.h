// Traces of tensor-core products in halves, s[i,j] = sum[k](a[i,k] * b[j,k]), whose sums another stage turns
// into the result: t0 and t1 are the operands, t3 the sums, t4 the result. Several folders' tests use them,
// each with tiles of its own sizes.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"

namespace mycc {

// The part of the product that a block computes at a time, in elements.
struct TileSizes {
  int rows, columns, depth;
};

// A role copies by TMA into a ring of `slots`; `warpgroups` warpgroups multiply, and send their results
// through shared memory. `deal` is the lines that say how blocks share the tiles.
inline std::string WarpSpecializedTrace(const TileSizes& tile, int warpgroups, int slots,
                                        const std::string& deal) {
  constexpr int kHalfBytes = 2;
  return absl::Substitute(R"(split(t3.a0, [$0])
split(t3.a1, [$1])
split(t3.r0, [$2])
reorder([t3.a0.0, t3.a1.0, t3.r0.0, t3.a0.1, t3.a1.1, t3.r0.1])
fuse([t3.a0.0, t3.a1.0])
bind(t3.a0.0+a1.0, block)
$7cache_write(t3, t3.a0.0+a1.0)
reverse_inline(t4)
stage_shared(t3, t0, t3.r0.0, shared)
stage_shared(t3, t1, t3.r0.0, shared)
layout(t0.s, 0, $3)
layout(t1.s, 0, $3)
tensorize_tile(t3.a0.1, wgmma.f16, $5, 1)
pipeline(t3.r0.0, bulk, $6)
stage_write(t3.w, t3.a0.0+a1.0, shared)
layout(t3.w.s, 0, $4)
)",
                          tile.rows, tile.columns, tile.depth, kHalfBytes * tile.depth,
                          kHalfBytes * tile.columns, warpgroups, slots, deal);
}

// All threads copy by cp.async into three slots; four warps multiply.
inline std::string MultistageTrace(const TileSizes& tile) {
  constexpr int kHalfBytes = 2;
  return absl::Substitute(R"(split(t3.a0, [$0])
split(t3.a1, [$1])
split(t3.r0, [$2])
reorder([t3.a0.0, t3.a1.0, t3.r0.0, t3.a0.1, t3.a1.1, t3.r0.1])
bind(t3.a0.0, block)
bind(t3.a1.0, block)
cache_write(t3, t3.a1.0)
reverse_inline(t4)
stage_shared(t3, t0, t3.r0.0, shared)
stage_shared(t3, t1, t3.r0.0, shared)
layout(t0.s, 0, $3)
layout(t1.s, 0, $3)
tensorize_tile(t3.a0.1, mma.f16, 2, 2)
pipeline(t3.r0.0, threads, 3)
)",
                          tile.rows, tile.columns, tile.depth, kHalfBytes * tile.depth);
}

// The steps of WarpSpecializedTrace in clusters of two blocks that differ in their rows: both need the same
// tile of t1.
inline std::string InClustersOfTwo(const std::string& steps) {
  return absl::StrReplaceAll(
      steps, {{"split(t3.a0, [", "split(t3.a0, [2, "},
              {"reorder([t3.a0.0, ", "reorder([t3.a0.1, t3.a0.0, "},
              {"t3.a0.1, t3.a1.1, t3.r0.1])", "t3.a0.2, t3.a1.1, t3.r0.1])"},
              {"bind(t3.a0.0+a1.0, block)\n",
               "bind(t3.a0.1, block)\nmulticast_cluster(t3.a0.1)\nbind(t3.a0.0+a1.0, block)\n"},
              {"tensorize_tile(t3.a0.1,", "tensorize_tile(t3.a0.2,"}});
}

}  // namespace mycc
