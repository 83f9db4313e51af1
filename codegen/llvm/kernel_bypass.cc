// Emits stores that bypass the caches. A tensor's alignment is known only in each call, so the statement is
// emitted twice:
//
//   if (every output begins at a cache line) { body, with such stores; fence } else { body }
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/kernel_flow.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

using llvm::Value;

constexpr uint64_t kLine = 64;

}  // namespace

void LlvmKernelEmitter::EmitBypass(const Bypass& bypass) {
  Value* bits = b_.getInt64(0);
  for (const Buffer& buffer : bypass.outputs)
    bits = b_.CreateOr(bits, b_.CreatePtrToInt(PlaceOf(buffer).pointer, b_.getInt64Ty()));
  Value* at_lines = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt64(kLine - 1)), b_.getInt64(0));
  EmitBranch(
      b_, at_lines,
      [&] {
        bypasses_ = true;
        Statement(bypass.body);
        EmitStoreFence();
        bypasses_ = false;
      },
      [&] { Statement(bypass.body); });
}

// Emits a fence. Stores that bypass the caches are not ordered otherwise, and must be visible before the
// threads synchronize.
void LlvmKernelEmitter::EmitStoreFence() {
  if (bypasses_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

// Whether the store of the lanes at hand does.
bool LlvmKernelEmitter::BypassesCaches(const Store& store) const {
  return bypasses_ && lanes_ && lanes_->count <= store.bypass_lanes &&
         lanes_->count * DTypeBytes(store.buffer->dtype) >= kLeastBypassBytes;
}

}  // namespace mycc
