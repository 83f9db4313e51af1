// Lowered kernels as one function that the interpreter can run: packed and workspace buffers allocated around
// both bodies.
#pragma once

#include <memory>

#include "codegen/passes/lower.h"

namespace mycc {

inline Function WholeFunction(const LoweredFunction& lowered) {
  Function whole = lowered.kernel;
  whole.body = MakeSeq({lowered.pack.body, lowered.kernel.body});
  for (const PackedBuffer& packed : lowered.packed)
    whole.body = std::make_shared<Alloc>(packed.buffer, whole.body);
  for (const WorkspaceBuffer& buffer : lowered.workspace)
    whole.body = std::make_shared<Alloc>(buffer.buffer, whole.body);
  return whole;
}

}  // namespace mycc
