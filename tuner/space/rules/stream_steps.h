// The steps that the CPU's and the GPU's rules for a chain along one axis share: cutting the sum into blocks
// of rows and of the axis, and moving every stage of the chain under the loop over the axis. Pure.
#pragma once

#include <string>
#include <vector>

#include "tuner/space/part.h"
#include "tuner/space/stream_chain.h"

namespace mycc {

// Elementwise stages on tiles that are computed where they are read.
bool IsInlinedTile(const Anatomy& anatomy, const StreamChain& chain, int tile);
// The others, in order.
std::vector<int> KeptTiles(const Anatomy& anatomy, const StreamChain& chain);

// Whether scores are masked by comparisons of indices that leave whole blocks of the axis out.
bool HasMask(const Anatomy& anatomy, const StreamChain& chain);
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
// around loops.step.
void EmitChain(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops,
               const std::string& block, TraceBuilder* b);

// Skips masked blocks, where that is decided and there are several. The last step of a rule.
void EmitSkip(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops, const Values& v,
              TraceBuilder* b);

// The blocks over rows alone that stream_reduction makes for a reduction of the chain.
std::vector<std::string> StreamedVectors(const Anatomy& anatomy, const StreamChain& chain,
                                         const std::string& reduction);

}  // namespace mycc
