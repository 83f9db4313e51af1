// The share of one thread block in a pipelined launch: its tiles of results, their steps, and each step's
// number in the ring. Without marks a block has one tile. A persistent block has several, in rounds:
//
//   block b in T: W(b)   ->   block w in P: for round: if round*P + w < T: W(round*P + w)
//
// Tiles with loops of computed lengths (skip_masked) are taken there and back: round 1 begins with the last
// block. Neighbouring tiles have similar lengths, so a block with a long tile gets a short one next. Counters
// number the steps of such tiles.
//
// With stream-K (stream_k.h), a block has a range of steps instead of the loop `for k`:
//
//   for turn: acc = 0
//             for k from .. to: ..
//             if from > 0: parts[worker] = acc; signal worker
//             else: if to < steps: for those who have the rest: await them; acc += their parts
//                   y[..] = acc
//
// Pure. For bulk_pipeline.cc only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt.h"
#include "codegen/passes/stream_k.h"

namespace mycc {

// The code of a block, and the variable of the loop in it whose iterations are the steps of the ring.
struct RingWork {
  Stmt work;
  Var ring;
};

// Serial loops that contain only the pipelined loop are fused with it: the ring runs through all their
// iterations.
RingWork FlattenRing(const For& loop, const Stmt& work);

// Counts the steps of a ring through loops of computed lengths, in each role by itself:
//
//                                     alloc counter; counter = 0
//   for tile: for k in length:   ->   for tile: before = counter
//     step                                      for k in length: step number before + k
//                                               counter = before + length
class RingCounter {
 public:
  // `most`: an upper bound of the steps in all tiles of a block.
  RingCounter(const std::string& name, int64_t most)
      : counter_(MakeBuffer(absl::StrCat(name, ".count"), DType::kI32, {}, Scope::kLocal)),
        before_(MakeVar(absl::StrCat(name, ".counted"), most + 1)) {}
  // The number of steps before the loop, for use in a loop that Counting returned.
  Expr before() const { return VarRef(before_); }
  // The loop, after which the counter has grown by its length; a negative length is 0.
  Stmt Counting(Stmt loop, const Expr& length) const {
    const Expr after = before() + Simplify(MakeBinary(Op::kMax, length, IntConst(0)));
    return std::make_shared<Let>(before_, MakeCast(DType::kI64, Load(counter_, {})),
                                 MakeSeq({std::move(loop), Count(after)}));
  }
  // The role, with its counter at 0 before it.
  Stmt Around(Stmt role) const {
    return std::make_shared<Alloc>(counter_, MakeSeq({Count(IntConst(0)), std::move(role)}));
  }

 private:
  Stmt Count(const Expr& steps) const {
    return std::make_shared<Store>(counter_, std::vector<Expr>{}, MakeCast(counter_->dtype, steps));
  }

  const Buffer counter_;
  const Var before_;
};

struct BlockWork {
  RingWork of_block;
  std::vector<const For*> grid;  // the loops over the blocks; their bodies do not count
  std::vector<Stmt> owned;       // loops of `grid` that are new
  Expr number;                   // of a step, from 0 on through all tiles of the block
  // The steps are counted; empty where their number follows from the loops alone.
  std::optional<RingCounter> counter;
  Var round;       // of a persistent block; null where there is one tile, and with stream-K
  int groups = 1;  // of warps, which take the rounds in turns (pingpong)
  std::optional<PartialSums> partial;  // of tiles that several blocks share (stream-K)
};

// `loop` is the pipelined loop as it was marked, `blocks` the grid's loops around it, and `of_tile` the code
// of one tile of results. FailedPrecondition, naming the loop, when stream-K cannot divide the tiles, or when
// groups of warps or stream-K meet loops of computed length. REQUIRES: `blocks` outlive the result.
absl::StatusOr<BlockWork> WorkOfBlock(const For& loop, const std::vector<const For*>& blocks,
                                      RingWork of_tile);

}  // namespace mycc
