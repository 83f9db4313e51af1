// The tiles of a ring, in sets with slots and barriers of their own. A slot of one set is full or empty
// whatever the other sets' slots are.
//
// There is one set, except where several products by warpgroups have tiles that no other statement uses, such
// as the products with K and with V in attention. Then each product has a set, and so has a nest between them
// whose threads read tiles of its own, such as biases:
//
//   copy:    for k: wait empty a; a = ..; arrive full a; wait empty b; b = ..; arrive full b
//   compute: for k: wait full a; .. += .. * a; arrive empty a; ..; wait full b; .. += .. * b; arrive empty b
//
// The blocks of a cluster may share tiles: each copies its part of a tile to all of them (multicast).
//
// Pure. For bulk_pipeline.cc only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt.h"
#include "codegen/passes/pipeline_loops.h"

namespace mycc {

class RingSets {
 public:
  // `slots` of each tile. REQUIRES: the copy engine can make all copies of `parts` (BulkBoxOf).
  RingSets(const LoopParts& parts, int slots);

  size_t count() const { return sets_.size(); }
  const std::vector<Buffer>& tiles(size_t set) const { return sets_[set]; }
  bool Has(size_t set, const Buffer& tile) const { return std::ranges::count(sets_[set], tile) > 0; }
  // The only set whose tiles the statement uses; null for none. REQUIRES: there are several sets.
  std::optional<size_t> SetOf(const Stmt& reader) const;

  // A set's barriers are numbered together: one for each slot that is full, then one for each that is empty.
  Expr Full(size_t set, const Expr& slot) const {
    return Simplify(slot + 2 * static_cast<int64_t>(set) * slots_);
  }
  Expr Empty(size_t set, const Expr& slot) const { return Simplify(Full(set, slot) + slots_); }
  // The arrivals that complete a phase of each barrier. `readers`: those that make a slot empty.
  std::vector<int> Arrivals(int readers) const;

  // The bytes that all blocks of a cluster copy into one block's tiles of the set in a step.
  int64_t BytesOfStep(size_t set) const { return bytes_[set]; }
  // Whether threads load elements of the tiles, or fragments of them (mma.sync).
  bool ThreadsRead() const { return threads_read_; }

 private:
  const int slots_;
  std::vector<std::vector<Buffer>> sets_;
  std::vector<int64_t> bytes_;  // by set
  bool threads_read_;
};

// Whether all blocks of the cluster copy the same elements. `cluster` is the variable of the loop over its
// blocks; null when there is no cluster.
bool IsMulticast(const Stmt& copy, const Var& cluster);

// The blocks advance through the ring of pipelined loop `ring` together, and share some of its tiles.
// FailedPrecondition when their steps differ, when no tile is shared, or when a shared tile cannot be divided
// among them. `body` is the code of one block. REQUIRES: the copy engine can make all copies of `parts`
// (BulkBoxOf).
absl::Status CheckCluster(const Stmt& body, const LoopParts& parts, const Var& ring, const Var& cluster);

}  // namespace mycc
