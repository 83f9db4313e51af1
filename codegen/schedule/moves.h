// Checks and helpers for primitives that move or copy regions: the boxes of a buffer that statements access,
// blocks in their naive form, loops over a box, and buffers of a box's size. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/block_guards.h"
#include "codegen/schedule/tree.h"

namespace mycc {

// One dimension of a box: [base, base + extent), base over the loops outside. `whole` boxes are [0, shape).
struct DimRegion {
  Expr base;
  int64_t extent;
  bool whole;

  // The index of an element from its place in the box.
  Expr At(const Expr& place) const { return whole ? place : base + place; }
  bool IsSame(const DimRegion& other) const {
    return StructurallyEqual(base, other.base) && extent == other.extent;
  }
};

// An access: index expressions with the block's bindings substituted, over loop variables.
using Access = std::vector<Expr>;

// Every read of `buffer` by blocks under `stmt`.
std::vector<Access> ReadsUnder(const Stmt& stmt, const Buffer& buffer);

// The smallest box that covers all accesses while the `inner` variables vary and the others are fixed. A
// dimension is taken whole when its index depends on data or is not linear in the inner variables, or when
// its bases differ by more than a constant.
std::vector<DimRegion> CoveringBox(const std::vector<Access>& accesses, const VarSet& inner,
                                   const std::vector<int64_t>& shape);

// FailedPrecondition when the loop runs along both an axis and a reduction of the block, as fused loops may.
absl::Status CheckCarriesOneKind(const Block& block, const For& loop);

// Whether each index of the block's output is an iteration variable of its own: the output was not moved into
// a loop, packed or made an accumulator.
bool WritesAtItsAxes(const Block& block);

// The values of the block's iteration variables when it writes the element at `index`, where each index is an
// iteration variable, or its distance from the start of a box (compute_at). nullopt for other layouts.
std::optional<VarMap> ItersAt(const Block& writer, const std::vector<Expr>& index);

// The loops of the perfect nest around the path's target, outermost first; and the path to the outermost.
std::vector<const For*> NestOf(const Path& path);
Path NestPath(Path path);

// OK when the block is alone under serial loops, one for each iteration variable, as BuildNaive and rfactor
// leave it. Such loops carry no decisions and may be rebuilt. Partial blocks of rfactor also have guards,
// which some callers allow.
absl::Status CheckNaive(const Path& path, bool guards_allowed = false);

// Whether the block can move to the end of `to`: the loops around its own nest are around `to` too, and the
// tensor that it writes exists there.
absl::Status CheckCanMove(const Function& function, const Path& block, const Path& to);

// OK when the loop's last iteration executes the block. After a split that does not divide it may not.
absl::Status CheckLastIterationRuns(const For& loop, const Block& block);

// The box that the writer fills while the inner loops run: the one that CoveringBox computes for it.
// FailedPrecondition where elements of that box are left unwritten.
absl::StatusOr<std::vector<DimRegion>> FilledBox(const Block& writer, const VarSet& inner);

// The dimension of the block's tensor that the iteration variable indexes; a layout may have another order.
size_t DimOf(const Block& block, const IterVar& iter);
// A loop of block `name` over a part of the iteration variable's domain, or over all of it for null. The
// variable is bound to it.
LoopSpec LoopOver(const DimRegion* part, const std::string& name, IterVar* iter);

// The name of a loop of block `from` in a copy of its nest for block `to`: t2.a0.1 becomes t2.w.a0.1. A loop
// that is not named after `from` becomes `to`, a dot, and its whole name.
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

// A copy between the block's tensor and a tile that has a dimension for each of these loops around the block:
// the same loops, named after `name`, and the block's spatial iteration variables bound to them.
struct TileCopy {
  std::vector<LoopSpec> loops;
  std::vector<IterVar> iters;  // spatial variables, and guards of elements
  std::vector<Expr> local;     // index into the tile
  std::vector<Expr> global;    // index into the tensor
};
// The block, writing to such a tile instead.
std::shared_ptr<Block> WritingTile(const Block& block, const std::vector<const For*>& tile,
                                   const std::string& name, Scope scope);
TileCopy MakeTileCopy(const Block& block, const std::vector<const For*>& tile, const std::string& name);
// The block `name` that copies the tile to the tensor, under its loops.
Stmt MakeWriteBack(const Block& block, const Buffer& from, const std::vector<const For*>& tile,
                   const std::string& name);

}  // namespace mycc
