// Stream-K: thread blocks share the last tiles of a product by steps of the depth, so that all blocks have
// the same number of steps (Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense
// Matrix-Matrix Multiplication on the GPU", PPoPP 2023). Here groups of blocks share a few tiles each. The
// same block of all groups works at the same depth of neighbouring tiles, so their operands come from L2 once
// for many. One group is the paper's scheme. Pure; for bulk_pipeline.cc alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// The shares of the workers. Tiles beyond whole rounds of all workers are dealt out first. A group has every
// groups-th of them, and its members share the steps of these out in order: member m has those from Begin(m)
// to Begin(m + 1), which are parts of one tile after the other. Then each worker has as many whole tiles as
// all others. One of all these is a turn.
class StreamShares {
 public:
  // REQUIRES: the groups have no more members than there are workers, and the same number of tiles each,
  // with a step for each member.
  StreamShares(int64_t tiles, int64_t steps, int64_t workers, const StreamKGroups& groups);

  // A turn's tile; its steps [from, to), at least one; the steps of all turns before.
  struct Turn {
    Expr tile, from, to, before;
  };
  // `body` for all turns of a worker; variables are called after `name`.
  Stmt Turns(const Expr& worker, const std::string& name,
             const std::function<Stmt(const Turn& turn)>& body) const;
  // Whether the worker `ahead` members after `worker` has steps of the dealt tile that `worker` has the first
  // steps of; and that worker.
  Expr Has(const Expr& worker, const Expr& ahead, const Turn& turn) const;
  Expr Ahead(const Expr& worker, const Expr& ahead) const { return worker + ahead * groups_; }

  int64_t workers() const { return workers_; }
  int64_t steps() const { return steps_; }
  // Members that have steps of a tile besides the one that has its first, at most.
  int64_t helpers() const;

 private:
  int64_t Begin(int64_t member) const { return member * tiles_of_group_ * steps_ / members_; }
  Expr Begin(const Expr& member) const { return FloorDiv(member * (tiles_of_group_ * steps_), members_); }
  Expr Member(const Expr& worker) const { return FloorDiv(worker, groups_); }

  const int64_t steps_, workers_;
  const int64_t groups_, members_;
  const int64_t whole_;           // tiles of each worker
  const int64_t dealt_;           // tiles of all
  const int64_t tiles_of_group_;  // dealt ones
  int64_t parts_ = 0;             // turns that some member needs for its share of them
};

// The sums of tiles that several workers have. The worker with a tile's first steps ends it: in its last turn
// but for whole tiles. The others have those steps in their first turn, and leave their sums in memory.
class PartialSums {
 public:
  // `clears`: the nests that clear the accumulators of the products in `loop`. Refuses what is not such a
  // nest. REQUIRES: `loop` outlives the sums.
  static absl::StatusOr<PartialSums> Of(const std::vector<Stmt>& clears, const Stmt& loop, int64_t workers);

  // Leaves the worker's sums for others.
  Stmt Give(const Expr& worker) const;
  // Adds the sums of worker `giver` to the own ones.
  Stmt Take(const Expr& giver) const;
  // `launch`, after one that lowers the flags, inside the tensors that both need.
  Stmt Around(Stmt launch) const;

 private:
  struct Sums {
    Stmt clear;          // the nest of the accumulator's elements
    const Mma* product;  // that they are the sums of
    Buffer parts;
  };
  std::vector<Sums> sums_;
  Buffer flags_;
};

}  // namespace mycc
