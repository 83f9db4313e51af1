// Stream-K: thread blocks share the last tiles of a product by steps of the depth, so that all blocks have
// the same number of steps (Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense
// Matrix-Matrix Multiplication on the GPU", PPoPP 2023). Here each group of blocks shares a few tiles.
// Corresponding blocks of all groups work at the same depth of neighbouring tiles, so they share operands in
// L2. One group is the paper's scheme. Pure. For block_work.cc only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// Each worker's (block's) share of the tiles. The tiles that do not divide evenly among the workers are
// "dealt" tiles, and come first. Group g has every groups-th of them. Its members divide their steps in
// order: member m has steps Begin(m) to Begin(m + 1), which may belong to several tiles. After them each
// worker has the same number of whole tiles. A worker's part of one tile is a turn.
class StreamShares {
 public:
  // REQUIRES: groups * members <= workers; all groups have the same number of dealt tiles; each member has at
  // least one step.
  StreamShares(int64_t tiles, int64_t steps, int64_t workers, const StreamKGroups& groups);

  // A turn's tile, its steps [from, to) (at least one), and the number of steps of all turns before.
  struct Turn {
    Expr tile, from, to, before;
  };
  // Executes `body` for all turns of a worker; variables are named after `name`.
  Stmt Turns(const Expr& worker, const std::string& name,
             const std::function<Stmt(const Turn& turn)>& body) const;
  // `worker` has the first steps of the dealt tile of `turn`. Has: whether the worker `ahead` members after
  // it has steps of that tile too. Ahead: that worker.
  Expr Has(const Expr& worker, const Expr& ahead, const Turn& turn) const {
    const Expr of_group = FloorDiv(turn.tile, groups_);
    return MakeBinary(Op::kLt, Begin(Member(worker) + ahead), (of_group + 1) * steps_);
  }
  Expr Ahead(const Expr& worker, const Expr& ahead) const { return worker + ahead * groups_; }

  int64_t workers() const { return workers_; }
  int64_t steps() const { return steps_; }
  // The largest number of members with steps of the same tile, without the one that has its first steps.
  int64_t helpers() const;

 private:
  int64_t Begin(int64_t member) const { return member * tiles_of_group_ * steps_ / members_; }
  Expr Begin(const Expr& member) const { return FloorDiv(member * (tiles_of_group_ * steps_), members_); }
  Expr Member(const Expr& worker) const { return FloorDiv(worker, groups_); }

  const int64_t steps_, workers_;
  const int64_t groups_, members_;
  const int64_t whole_;           // whole tiles of each worker
  const int64_t dealt_;           // dealt tiles of all groups
  const int64_t tiles_of_group_;  // dealt tiles of each group
  int64_t parts_ = 0;             // the largest number of turns that a member needs for its dealt steps
};

// The partial sums of dealt tiles. The worker with a tile's first steps finishes the tile, in its last turn
// of dealt tiles. The other workers have their steps of the tile in their first turn, and store their sums in
// memory.
class PartialSums {
 public:
  // `clears`: the nests that set the accumulators of the products in `loop` to zero; FailedPrecondition for
  // other nests. REQUIRES: `loop` outlives the sums.
  static absl::StatusOr<PartialSums> Of(const std::vector<Stmt>& clears, const Stmt& loop, int64_t workers);

  // Stores the worker's sums in memory, and signals that they are there.
  Stmt Give(const Expr& worker) const;
  // Waits for the sums of worker `giver`, and adds them to this worker's.
  Stmt Take(const Expr& giver) const;
  // `launch` after a launch that clears the flags, inside the Allocs of the tensors that both need.
  Stmt Around(Stmt launch) const;

 private:
  struct Sums {
    Stmt clear;          // the nest over the accumulator's elements
    const Mma* product;  // the products that are summed
    Buffer parts;
  };
  std::vector<Sums> sums_;
  Buffer flags_;
};

}  // namespace mycc
