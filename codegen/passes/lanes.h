// Lanes, which are consecutive values of a loop's variable: their elements in memory, their conditions,
// whether they may run concurrently, and the stores of their vectors. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// The largest number of elements up to `most`, a power of two, that divides the offsets of all accesses at
// `indices`, before swizzling and apart from the part of `lane`, along which the elements are consecutive; 1
// where they are not.
int64_t ConsecutiveElements(const Layout& layout, const std::vector<Expr>& indices, const VarNode* lane,
                            int64_t most);

// Whether a comparison is true for all of `lanes` consecutive values of the variable, the first of them a
// multiple of `lanes`, or for none: k < 12 for four lanes, but neither k <= 12 nor 3 < i + k. False where it
// cannot be told.
bool LanesAgree(const Expr& condition, const VarNode* lane, int64_t lanes);

// True when no iteration of a vector loop accesses an element that another one writes, so that lanes may
// execute them at the same time. For every buffer written in the loop, all accesses must have the same index
// in one dimension (or the same flat position), which depends on the loop's variable and on nothing else that
// changes inside the loop.
bool CanWiden(const For& loop);

// For a CPU: rewrites each store of vectors of lanes. `rewrite` gets the loop whose lanes they are, and all
// loops around the store in `body`, outermost first; null keeps the store. Leaves out loops whose stores are
// shuffled, and the nests of TileMoves. REQUIRES: loops have their forms.
using LaneStoreRewrite =
    std::function<Stmt(const Store& store, const For& lanes, const std::vector<const For*>& loops)>;
Stmt RewriteLaneStores(const Stmt& body, const LaneStoreRewrite& rewrite);

}  // namespace mycc
