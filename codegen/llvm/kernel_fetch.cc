// Prefetches, for a loop marked by fetch_next, the vectors that it will read in the next iteration of the
// enclosing loop.
#include <algorithm>
#include <cstdlib>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

using llvm::Value;

bool IsSameRead(const ExprNode& a, const ExprNode& b) {
  return a.buffer == b.buffer && std::equal(a.args.begin(), a.args.end(), b.args.begin(), StructurallyEqual);
}

}  // namespace

void LlvmKernelEmitter::Fetch(Value* pointer, bool to_write) {
  constexpr int kToL1 = 3, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                     {pointer, b_.getInt32(to_write), b_.getInt32(kToL1), b_.getInt32(kData)});
}

void LlvmKernelEmitter::EmitFetching(const For& loop) {
  fetching_ = LoopVarsUnder(loop.body);
  fetching_->insert(loop.var.get());
  EmitIterations(loop);
  fetching_.reset();
}

// The distance in elements between the access in this iteration of the enclosing loop and in the next: the
// smallest stride of the loops outside. 0: none moves the access.
int64_t LlvmKernelEmitter::NextIteration(const Linear& index) const {
  int64_t least = 0;
  for (const auto& [atom, coefficient] : index.terms) {
    if (atom->op != Op::kVar || fetching_->count(atom->var.get())) continue;
    const auto outer = vars_.find(atom->var.get());
    if (outer == vars_.end() || llvm::isa<llvm::Constant>(outer->second.value)) continue;
    if (least == 0 || std::abs(coefficient) < std::abs(least)) least = coefficient;
  }
  return least;
}

// Prefetches from the caller's inputs, each vector once even if the value reads it several times. Buffers
// that were computed here are in a cache already.
void LlvmKernelEmitter::FetchNext(const Expr& value) {
  std::vector<const ExprNode*> fetched;
  Visit(value, [&](const ExprNode& load) {
    if (load.op != Op::kLoad || !PlaceOf(load.buffer).read_only || PlaceOf(load.buffer).over_read) return;
    const auto same = [&](const ExprNode* other) { return IsSameRead(*other, load); };
    if (std::any_of(fetched.begin(), fetched.end(), same)) return;
    fetched.push_back(&load);
    const Access access = AccessOf(load.buffer, load.args, &load);
    const int64_t next = NextIteration(flat_.at(&load));
    if (next != 0 && access.stride == 1) Fetch(ByteOffset(access.pointer, next * DTypeBytes(load.dtype)));
  });
}

}  // namespace mycc
