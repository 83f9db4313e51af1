// How a block's iteration variables depend on loops: those that run along a reduction, and variables whose
// domains exclude some iterations. Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

// Whether the loop runs along reduction variables of the block.
bool CarriesReduction(const Block& block, const For& loop);

// Whether the loop runs along reduction variables of a block in it.
bool IsReduceLoop(const For& loop);

// Whether reduction variables of the block run along a loop that `binding` depends on.
bool FollowsReduction(const Block& block, const Expr& binding);

// True for a spatial iteration variable that does not index the output. Its domain decides whether an
// instance of the block is executed; the block's value may read it.
bool IsGuard(const Block& block, const IterVar& iter);

// True for a guard that depends on a reduction loop: it excludes terms of a sum, not elements of the tensor.
bool GuardsTerms(const Block& block, const IterVar& iter);

}  // namespace mycc
