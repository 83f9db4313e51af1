// Analyses a loop for the choices of the back end: which idiom it is emitted as.
#pragma once

#include <optional>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// Whether the iterations of a vector loop may run side by side, one in each lane: no iteration touches what
// another one writes. Every buffer written in the loop is indexed, in one dimension or as memory and by all
// accesses alike, by the loop's variable and nothing that changes inside the loop.
bool CanWiden(const For& loop);

// The store of a loop that is nothing but one reduction into one element, s = s (op) value; null for other
// loops.
const Store* LaneReductionOf(const For& loop);

// The products under a statement that holds nothing else, all into one accumulator that stands still inside
// it; empty where there is anything else.
std::vector<const Mma*> ProductsOfOneAccumulator(const Stmt& stmt);

// True when the loop's variable chooses an element of a register tile.
bool IndexesAccumulator(const For& loop);

// An unrolled loop around nothing but a vector loop of one store, with loads that are contiguous along the
// unrolled loop and strided along the lanes, from tensors that the store leaves alone.
struct CrossReads {
  const VarNode* unrolled;
  const For* lanes;
  std::vector<const ExprNode*> loads;  // those
};
std::optional<CrossReads> CrossReadsOf(const For& loop);

// An unrolled loop around nothing but a vector loop of one store, to elements that are contiguous along the
// unrolled loop and as far apart along the lanes as that one is long: y[v, e].
struct InterleavedStore {
  const VarNode* unrolled;  // e
  const For* lanes;         // v
  const Store* store;
  int group;  // the unrolled loop's extent
};
std::optional<InterleavedStore> InterleavedStoreOf(const For& loop);

// Around such a loop another unrolled one, along which the elements that are stored lie as they do along it:
// y[u, v, e] = x[v, group * u + e].
struct TurnedGroups {
  const VarNode* unrolled;  // u
  InterleavedStore inner;
  const ExprNode* load;
};
std::optional<TurnedGroups> TurnedGroupsOf(const For& loop);

}  // namespace mycc
