// The steps that the CPU's and the GPU's rules for a chain along one axis share: cutting the sum into blocks
// of rows and of the axis, and moving every stage of the chain under the loop over the axis. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tuner/space/part.h"
#include "tuner/space/stream_chain.h"

namespace mycc {

// The loads of a tile's stage that are of no other tile, and have an element for each key: biases, masks.
std::vector<const ExprNode*> BiasesOf(const Anatomy& anatomy, const StreamChain& chain, int tile);

// Refusals of operands, for users: the types of the four factors, which the rule does not multiply
// (InvalidArgument; another rule may), and a tensor that is not contiguous along an axis.
inline constexpr char kStreamedTypes[] = "f32, or bf16,";  // of the CPU's rules
absl::Status OtherTypes(const StreamChain& chain, const std::string& expected);
bool IsLastIndex(const Expr& load, const Var& axis);
absl::Status NotLast(const Expr& load, const Var& axis, const std::string& product);

// The loop of a dimension of a tensor that a block writes: "t1", 2 -> "t1.a2".
std::string Dim(const std::string& block, int dim);

// Elementwise stages on tiles that are computed where they are read.
bool IsInlinedTile(const Anatomy& anatomy, const StreamChain& chain, int tile);
// The others, in order.
std::vector<int> KeptTiles(const Anatomy& anatomy, const StreamChain& chain);

// Whether scores are masked by comparisons that leave whole blocks of the axis out: of indices, as in causal
// masks, or of an index and an input that is the same for all rows of a block, such as a length.
bool HasMask(const Anatomy& anatomy, const StreamChain& chain);
// Whether one of them hides the last keys, and other ones for other rows.
bool IsCausal(const Anatomy& anatomy, const StreamChain& chain);
// The decision `skip`, with one choice: whether there are such blocks, which are skipped then.
void DecideSkip(const Anatomy& anatomy, const StreamChain& chain, Part* part);

// The loops of the sum after its rows are cut into blocks of `rows`, and the axis into blocks of `keys`.
struct StreamLoops {
  std::vector<std::string> outer;  // batches, other rows, and blocks of rows, outermost first
  std::string row, value, key;     // of a block's rows, the values, and a block's part of the axis
  std::string step;                // over blocks of the axis
};
StreamLoops SplitChain(const Anatomy& anatomy, const StreamChain& chain, int64_t rows, int64_t keys,
                       TraceBuilder* b);

// The sum gets an accumulator under `block`, and the epilogue follows it; the other stages move under the
// loop over blocks of the axis, reductions as running ones. REQUIRES: the sum's loops are in order, `block`
// around loops.step. `place` may move a stage elsewhere, when its readers have moved; it returns false to
// have it moved under the loop.
using PlaceStage = std::function<bool(int stage)>;
void EmitChain(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops,
               const std::string& block, TraceBuilder* b, const PlaceStage& place = nullptr);

// Skips masked blocks, where that is decided and there are several. The last step of a rule.
void EmitSkip(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops, const Values& v,
              TraceBuilder* b);

// A CPU's tile of the sum in registers, in its loops: rows, and vectors of the values. The instruction does
// its products; without one, they are ordinary arithmetic on lanes.
struct SumTile {
  int64_t rows, vectors;
};
void EmitSumTile(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops,
                 const SumTile& tile, int lanes, const std::string& instruction, TraceBuilder* b);

// A CPU's vectors in the blocks over the sum's accumulator, along its loop `values`; and in the blocks over
// rows alone that stream_reduction makes for a reduction of the chain, along dimension `dim`.
void EmitAccumulatorParts(const Anatomy& anatomy, const StreamChain& chain, const std::string& values,
                          int lanes, TraceBuilder* b);
void EmitRowVectors(const Anatomy& anatomy, const StreamChain& chain, const std::string& reduction, int dim,
                    int lanes, TraceBuilder* b);

}  // namespace mycc
