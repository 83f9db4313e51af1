// Emits stores that bypass the caches, for loops marked by nontemporal. They need vector-aligned addresses. A
// tensor's alignment is known only in each call, so the loop is emitted twice:
//
//   if (every output begins at a cache line) { loop, with such stores; fence } else { loop }
//
// Within a tensor the alignment must follow from the index.
#include <algorithm>
#include <numeric>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/kernel_flow.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

using llvm::Value;

constexpr uint64_t kLine = 64;
constexpr int64_t kLeastVector = 16;

}  // namespace

// Tensors that a loop writes and never reads.
std::vector<Buffer> LlvmKernelEmitter::OutputsOf(const Stmt& body) const {
  std::vector<Buffer> outputs;
  std::unordered_set<const BufferNode*> read;
  VisitStmts(body, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) {
        if (e.op == Op::kLoad) read.insert(e.buffer.get());
      });
    });
    if (const Store* store = DynAs<Store>(stmt)) {
      const auto origin = kernel_.layout.origins.find(store->buffer.get());
      const bool tensor =
          origin != kernel_.layout.origins.end() && origin->second.kind == BufferOrigin::kTensor;
      if (tensor && std::find(outputs.begin(), outputs.end(), store->buffer) == outputs.end())
        outputs.push_back(store->buffer);
    }
    return true;
  });
  std::erase_if(outputs, [&](const Buffer& buffer) { return read.count(buffer.get()) > 0; });
  return outputs;
}

void LlvmKernelEmitter::EmitNontemporal(const For& loop) {
  const std::vector<Buffer> outputs = OutputsOf(loop.body);
  if (outputs.empty()) return EmitIterations(loop);
  Value* bits = b_.getInt64(0);
  for (const Buffer& buffer : outputs)
    bits = b_.CreateOr(bits, b_.CreatePtrToInt(PlaceOf(buffer).pointer, b_.getInt64Ty()));
  Value* at_lines = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt64(kLine - 1)), b_.getInt64(0));
  EmitBranch(
      b_, at_lines,
      [&] {
        for (const Buffer& buffer : outputs) nontemporal_.insert(buffer.get());
        EmitIterations(loop);
        EmitStoreFence();
        nontemporal_.clear();
      },
      [&] { EmitIterations(loop); });
}

// Emits a fence. Stores that bypass the caches are not ordered otherwise, and must be visible before the
// threads synchronize.
void LlvmKernelEmitter::EmitStoreFence() {
  if (!nontemporal_.empty()) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

bool LlvmKernelEmitter::IsNontemporal(const Buffer& buffer, const Linear& index) const {
  if (!nontemporal_.count(buffer.get()) || !lanes_ ||
      lanes_->count * DTypeBytes(buffer->dtype) < kLeastVector)
    return false;
  // The index of lane 0 is a multiple of the number of lanes.
  int64_t divisor = std::gcd(index.constant, lanes_->count);
  for (const auto& [atom, coefficient] : index.terms) {
    if (atom->op == Op::kVar && atom->var.get() == lanes_->var) continue;
    divisor = std::gcd(divisor, coefficient * DivisorOf(atom));
  }
  return divisor == lanes_->count;
}

}  // namespace mycc
