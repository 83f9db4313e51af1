// Finds guards that tiles in registers do without. Beyond the edge of a tensor a tile's elements are never
// used, but threads hold them, and computing them costs less than a condition for each. Pure.
#pragma once

#include <unordered_set>

#include "codegen/passes/fragment_layouts.h"

namespace mycc {

// The stores to laid-out tiles that may be executed for all elements of the tile, whatever the conditions
// around them. Without its guard such a store fills elements that are undefined otherwise: it is the only
// store to its tile but for updates of what it stored, and next to the tile's allocation; its value depends
// on tiles alone that are defined everywhere.
std::unordered_set<const Store*> StoresBeyondEdges(const Stmt& body, const FragmentLayouts& layouts);

}  // namespace mycc
