// Finds the block iteration variables whose domains exclude some loop iterations. Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

// A spatial iteration variable that names no element of the output: its domain guards the instance, and a
// value may read it.
bool IsGuard(const Block& block, const IterVar& iter);

// A guard that follows a reduction loop keeps terms out of a sum, not elements out of the tensor.
bool GuardsTerms(const Block& block, const IterVar& iter);

}  // namespace mycc
