// Whether lanes may execute the iterations of a loop at the same time. Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

// True when no iteration of a vector loop accesses an element that another one writes. For every buffer
// written in the loop, all accesses must have the same index in one dimension (or the same flat position),
// which depends on the loop's variable and on nothing else that changes inside the loop.
bool CanWiden(const For& loop);

}  // namespace mycc
