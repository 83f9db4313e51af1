// Helpers of the primitives that move or copy regions: blocks in their naive form, loops over a box, and
// buffers cut to a box.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/block_guards.h"
#include "codegen/schedule/region.h"
#include "codegen/schedule/tree.h"

namespace mycc {

// A loop may run along reduction variables of a block, along its axes, or (fused) along both.
bool CarriesReduction(const Block& block, const For& loop);
bool CarriesAxis(const Block& block, const For& loop);

// Each element the block writes is named by iteration variables of its own, one for each dimension: it was
// not moved into a loop, packed or given an accumulator's place.
bool WritesAtItsAxes(const Block& block);

// The loops of the perfect nest around what the path leads to, outermost first.
std::vector<const For*> NestOf(const Path& path);

// OK when the block is alone under serial loops, one for each iteration variable, as BuildNaive and rfactor
// leave it: its loops carry no decisions yet and may be made anew. Partial blocks of rfactor also have
// guards, which some callers can keep.
absl::Status CheckNaive(const Path& path, bool guards_allowed = false);

// Whether the block can move to the end of `to`: the loops around its own nest are around `to` too, and the
// tensor that it writes exists there.
absl::Status CheckCanMove(const Function& function, const Path& block, const Path& to);

// OK when the loop's last iteration executes the block; a split that does not divide may leave it nothing.
absl::Status CheckLastIterationRuns(const For& loop, const Block& block);

// OK when the writer, while the inner loops run, fills the box that CoveringBox computes for it, so that
// readers of the box find every element written.
absl::Status CheckFills(const Block& writer, const std::unordered_set<const VarNode*>& inner);

// The name of a loop of block `from` in a copy of its nest for block `to`: t2.a0.1 becomes t2.w.a0.1. A loop
// that is not called after the block keeps its whole name behind the new one.
std::string RenamedLoop(const std::string& loop, const std::string& from, const std::string& to);

// Element `index` of the whole buffer as an index into its box.
std::vector<Expr> Localize(const std::vector<Expr>& index, const std::vector<DimRegion>& box);
std::vector<int64_t> ExtentsOf(const std::vector<DimRegion>& box);

// A block that copies one box: out[...] = value for every element of the box that exists in a tensor of
// `shape`. Its iteration variables a0, a1, ... are the elements' indices in the whole tensor; the loops are
// called NAME.a0, NAME.a1, ...
struct BoxCopy {
  std::vector<IterVar> iters;
  std::vector<LoopSpec> loops;
  std::vector<Expr> indices;  // VarRef of each iteration variable
};
BoxCopy MakeBoxCopy(const std::string& name, const std::vector<DimRegion>& box,
                    const std::vector<int64_t>& shape);

}  // namespace mycc
