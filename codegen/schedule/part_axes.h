// The axes of a chain's tensors when its axis is cut into parts (split_chain.h): where an element of a part
// lies in the whole tensor, and where an element of the whole lies in a part. For split_chain.cc only. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/schedule/split_chain.h"
#include "codegen/workload/stream_chain.h"

namespace mycc {

// The axes of one member over the parts. Rows come after the number of their part.
struct PartAxes {
  std::vector<Var> axes, reduce_axes;
  std::map<int, Expr> dims;  // by dimensions of tiles, without the row's and the streamed one
  Expr part, row, key;       // the key's number in the part
  VarMap of_whole;           // the member's axes in the whole, in terms of these
  Var head;                  // the axis of heads in the whole, where several share a tile; else null
  Expr is_own;               // whether no earlier part has the key; null where parts never overlap
};

// The batch axis, of the sum's, that keys and values use as axis//count alone; -1 and 1 where there is none.
struct SharedHeads {
  int axis = -1;
  int64_t count = 1;
};
SharedHeads FindSharedHeads(const Workload& workload, const StreamChain& chain);

class ChainPartition {
 public:
  // REQUIRES: `parts` are checked, as WithChainParts does. `workload` and `chain` outlive this.
  ChainPartition(const Workload& workload, const StreamChain& chain, const ChainParts& parts);

  int64_t count() const { return count_; }  // of parts
  // Queries of a tile, without the padding.
  int64_t Rows() const { return queries_ * heads_; }
  // Whether the tiles of stage `s` have further rows.
  bool HasPadding(int s) const { return s != chain_.sum && rows_ > Rows(); }
  // Whether the queries have to be put into the tiles' order of rows first.
  bool RepacksQueries() const { return heads_ > 1 || rows_ > queries_; }
  // Whether a stage is the scores, or a tile computed from them.
  bool IsOfTiles(int s) const;

  PartAxes AxesOf(int s) const;
  // A member's value over the part's axes. An index of keys or values has the number of the group of heads
  // that share them.
  Expr OverPart(const Expr& value, const PartAxes& at) const;
  // The index of the part's row in the result of a reduction, in the order of a tile's dimensions.
  std::vector<Expr> RowInPart(const PartAxes& at) const;

  // The element of part `number` that belongs to the element of the whole at `axes` of stage `s`.
  Expr OfWhole(const Buffer& part, int s, const std::vector<Var>& axes, const Expr& number) const;
  // The row of that element, in the order of a tile's dimensions.
  std::vector<Expr> RowInWhole(int s, const std::vector<Var>& axes) const;

 private:
  std::vector<int> DimsOf(int s) const;
  void AddRowsAndHeads(int s, PartAxes* made) const;
  void AddKeys(int s, PartAxes* made) const;
  bool IsEven() const { return count_ * length_ == keys_; }
  const Stage& stage(int s) const { return workload_.stages[s]; }

  const Workload& workload_;
  const StreamChain& chain_;
  const int64_t length_, keys_, count_;  // of a part, of the axis, and of parts
  const int row_dim_;                    // of a tile
  const int64_t queries_, heads_, rows_;
  int head_dim_ = -1;  // of a tile; -1: heads stay apart
};

}  // namespace mycc
