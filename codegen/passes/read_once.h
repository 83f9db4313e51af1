// Input tensors that a launch of a GPU reads once. Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

// The tensors whose elements `launch`, one of the launches in `body`, reads once. Only inputs much larger
// than the outputs count: for others the gain of evicting their cache lines first is smaller than the cost of
// evicting half-read lines.
BufferSet ReadOnce(const Stmt& body, const Launch& launch);

}  // namespace mycc
