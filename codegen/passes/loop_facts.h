// Recognizes the loops for which the back end has special code. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// Whether the iterations of a vector loop may run concurrently, one in each lane: no iteration accesses an
// element that another one writes. For every buffer written in the loop, all accesses must have the same
// index in one dimension (or the same flat position), which depends on the loop's variable and on nothing
// else that changes inside the loop.
bool CanWiden(const For& loop);

// The store of a loop that consists of one reduction into one element, s = s (op) value; null for other
// loops.
const Store* LaneReductionOf(const For& loop);

// The products in a statement that contains only products into one fixed accumulator; empty for other
// statements.
std::vector<const Mma*> ProductsOfOneAccumulator(const Stmt& stmt);

// True when the loop's variable indexes a register tile.
bool IndexesAccumulator(const For& loop);

// Whether a CPU's code has each iteration of the loop apart, with a constant for its variable.
bool IsUnrolled(const For& loop);

// Whether values of several iterations meet in what the loop stores, so that its store is none of a vector of
// lanes. REQUIRES: the loop has its form.
bool StoresShuffled(const For& loop);

// Whether the threads of a team execute the loop's iterations, in a function of their own. `in_team`: such a
// loop is around it.
bool IsForTeam(const For& loop, bool in_team);

// Transposed reads: an unrolled loop that contains only a vector loop of one store. Some loads are contiguous
// along the unrolled loop and strided along the lanes, from tensors other than the stored one.
struct CrossReads {
  const VarNode* unrolled;
  const For* lanes;
  std::vector<const ExprNode*> loads;  // those loads
};
std::optional<CrossReads> CrossReadsOf(const For& loop);

// An interleaved store y[v, e]: an unrolled loop over e that contains only a vector loop over v of one store.
// The elements are contiguous along e; lanes are as far apart as the extent of e.
struct InterleavedStore {
  const VarNode* unrolled;  // e
  const For* lanes;         // v
  const Store* store;
  int group;  // the unrolled loop's extent
};
std::optional<InterleavedStore> InterleavedStoreOf(const For& loop);

// An unrolled loop over u around an interleaved store of elements that are contiguous along u and e together:
// y[u, v, e] = x[v, group * u + e].
struct TurnedGroups {
  const VarNode* unrolled;  // u
  InterleavedStore inner;
  const ExprNode* load;
};
std::optional<TurnedGroups> TurnedGroupsOf(const For& loop);

}  // namespace mycc
