// The tiles of a block outside of its ring that only products read, such as the queries of attention. The
// copying role fetches them. They have barriers of their own: a tile is full when its bytes have come, and
// empty when its last reader has arrived. A persistent block fetches the next tile once the last step's
// product has read this one (ring_sets.h: a and b are sets of the ring):
//
//   copy:    for i: for k: ring a of k; if k == 0: wait empty q; q = ..; arrive full q; ring b of k
//   compute: for i: wait full q; for k: .. += q * a; if k is last: arrive empty q; ..
//
// A tile that is the same for all tiles of results, such as the weights of a convolution, is fetched once.
//
// Pure. For bulk_pipeline.cc only.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/stmt.h"

namespace mycc {

class BlockTiles {
 public:
  // Keeps the tiles that the copy engine can fill and that only products in loop `ring` read. `work` computes
  // one tile of results. `only_same`: only those tiles that are the same for all tiles of results.
  BlockTiles(const Stmt& work, const Var& ring, const std::vector<Buffer>& tiles, bool only_same);

  // FailedPrecondition, naming the tile, when no thread would share in filling another one of the tiles: the
  // copy engine cannot, and its loops are nobody's.
  const absl::Status& others() const { return others_; }

  bool IsSameForAll(const Buffer& tile) const;
  bool empty() const { return tiles_.empty(); }
  // Whether one product reads each tile, so that it is free after that product's last step.
  bool HaveOneReader() const;
  // The counts of their barriers, those of full tiles and of empty ones in turn. `first`: the number of the
  // first of them. `round`: the number of the block's tile of results; null when it has one. `readers`: the
  // arrivals of the role that reads.
  std::vector<int> SetBarriers(int64_t first, Expr round, int readers);

  // Whether the statement is the whole nest that fills one of the tiles.
  bool IsFill(const Stmt& stmt) const { return NumberOfFill(stmt) < tiles_.size(); }
  // For the copying role: waits until the tile is empty, and fills it.
  Stmt Fetch(const Stmt& fill) const;
  Stmt FetchAll(const Stmt& work) const;
  // For the role that reads, in the place of the nest.
  Stmt Await(const Stmt& fill) const;
  // After the last read. Null when the block has one tile of results.
  Stmt Release() const;
  bool IsReadBy(const Mma& mma) const;

 private:
  struct Tile {
    Buffer buffer;
    Var fill;  // of the outermost loop of the nest
    int readers = 0;
    bool is_same = false;  // for all tiles of results
  };
  // The number of the tile that the statement fills; the number of tiles if it fills none.
  size_t NumberOfFill(const Stmt& stmt) const;
  Expr Full(size_t tile) const { return IntConst(first_barrier_ + static_cast<int64_t>(2 * tile)); }
  Expr Empty(size_t tile) const { return IntConst(first_barrier_ + static_cast<int64_t>(2 * tile) + 1); }

  std::vector<Tile> tiles_;
  absl::Status others_;
  int64_t first_barrier_ = 0;
  Expr round_;
  int arrivals_ = 1;
};

}  // namespace mycc
