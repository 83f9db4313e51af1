// Finds the block iteration variables whose domains exclude some loop iterations. Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

// True for a spatial iteration variable that does not index the output. Its domain decides whether an
// instance of the block is executed; the block's value may read it.
bool IsGuard(const Block& block, const IterVar& iter);

// True for a guard that depends on a reduction loop: it excludes terms of a sum, not elements of the tensor.
bool GuardsTerms(const Block& block, const IterVar& iter);

}  // namespace mycc
