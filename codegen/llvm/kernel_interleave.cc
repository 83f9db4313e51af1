// Emits stores that interleave elements: an unrolled loop around a vector loop, whose stores are contiguous
// along the unrolled loop.
//
//   unroll e in 2: vector v in 16:         load a vector along v for each e
//     y[v, e] = f(x[e, v])            ->   interleave them in registers
//                                          store 32 elements
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

using llvm::Value;

// a0 b0 a1 b1 ..
Value* Zip(Builder& b, Value* even, Value* odd) {
  const int lanes = LanesOf(even);
  llvm::SmallVector<int, 128> mask;
  for (int lane = 0; lane < lanes; ++lane) mask.append({lane, lanes + lane});
  return b.CreateShuffleVector(even, odd, mask);
}

// Interleaves two or four vectors. Four are interleaved in two halves, which match the unpack instructions.
Value* Interleave(Builder& b, const std::vector<Value*>& vectors) {
  if (vectors.size() == 2) return Zip(b, vectors[0], vectors[1]);
  return Zip(b, Zip(b, vectors[0], vectors[2]), Zip(b, vectors[1], vectors[3]));
}

}  // namespace

void LlvmKernelEmitter::EmitInterleaved(const For& loop) {
  const For& lanes = As<For>(loop.body);
  const Store& store = As<Store>(lanes.body);
  const int64_t group = *ConstExtent(loop);
  Chunks(lanes, [&](Value* first, int count, int active) {
    std::vector<Value*> vectors;
    Access access;
    for (int64_t e = 0; e < group; ++e) {
      With(loop.var.get(), b_.getInt64(e), [&] {
        InLanes(lanes, first, count, active, [&] {
          Value* value = numbers_.ToMemory(store.buffer->dtype, Emit(store.value));
          if (!value->getType()->isVectorTy()) value = b_.CreateVectorSplat(count, value);
          vectors.push_back(value);
          if (e == 0) access = AccessOf(store.buffer, store.indices, &store);
        });
      });
    }
    StoreFirst(*access.place, Interleave(b_, vectors), access.pointer, DTypeBytes(access.dtype),
               active * group);
  });
}

}  // namespace mycc
