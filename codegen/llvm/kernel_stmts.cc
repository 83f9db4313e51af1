// Emits loops, conditions, allocations, stores, and stores past the caches. Vector loops, products and copies
// have files of their own.
#include <algorithm>

#include "base/check.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

// A tile on the stack may be read this far past its end.
constexpr int64_t kSlack = 64;
constexpr uint64_t kLine = 64;  // bytes of a cache line

}  // namespace

LlvmKernelEmitter::LlvmKernelEmitter(KernelContext& kernel, llvm::Function* function,
                                     const Arguments& arguments)
    : kernel_(kernel),
      function_(function),
      arguments_(arguments),
      b_(kernel.module, kernel.features),
      entry_(llvm::BasicBlock::Create(b_.getContext(), "entry", function)),
      memo_(1) {
  llvm::BasicBlock* body = llvm::BasicBlock::Create(b_.getContext(), "body", function_);
  b_.SetInsertPoint(entry_);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
}

void LlvmKernelEmitter::Body(const Stmt& stmt) {
  Statement(stmt);
  Return();
}

void LlvmKernelEmitter::Statement(const Stmt& stmt) {
  if (stmt == nullptr) return;
  memo_.assign(1, {});
  switch (stmt->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
      return;
    case StmtKind::kFor: return EmitFor(As<For>(stmt));
    case StmtKind::kIf: return EmitIf(As<If>(stmt));
    case StmtKind::kAlloc: return EmitAlloc(As<Alloc>(stmt));
    case StmtKind::kStore: return EmitStore(As<Store>(stmt));
    case StmtKind::kMma: return EmitMma(As<Mma>(stmt));
    case StmtKind::kBypass: return EmitBypass(As<Bypass>(stmt));
    case StmtKind::kTileMove: return EmitTileMove(As<TileMove>(stmt));
    case StmtKind::kTileRegion: return EmitTileRegion(As<TileRegion>(stmt));
    default: break;
  }
  MYCC_CHECK(false) << "a CPU kernel has no pipelines: " << PrintStmt(stmt);
}

void LlvmKernelEmitter::EmitFor(const For& loop) {
  const auto extent = ConstExtent(loop);
  if (extent == 0) return;
  if (extent == 1) return With(loop.var.get(), b_.getInt64(0), [&] { Statement(loop.body); });
  if (!lanes_ && IsForTeam(loop, in_region_)) return EmitParallel(loop);
  if (loop.loop_kind == LoopKind::kVector && !lanes_) return EmitVectorLoop(loop);
  if (loop.loop_kind == LoopKind::kUnroll) return EmitUnrolled(loop);
  EmitRolled(loop);
}

void LlvmKernelEmitter::EmitRolled(const For& loop) {
  const auto extent = ConstExtent(loop);
  Value* end = extent ? b_.getInt64(*extent) : Emit(loop.extent);
  EmitLoop(b_.getInt64(0), end, 1, extent.has_value(),
           [&](Value* v) { With(loop.var.get(), v, [&] { Statement(loop.body); }); });
}

void LlvmKernelEmitter::EmitLoop(Value* begin, Value* end, int64_t step, bool runs_once,
                                 const std::function<void(Value*)>& body) {
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(b_.getContext(), "loop", function_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(b_.getContext(), "done", function_);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  if (runs_once) {
    b_.CreateBr(loop);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), loop, done);
  }
  b_.SetInsertPoint(loop);
  llvm::PHINode* v = b_.CreatePHI(begin->getType(), 2);
  v->addIncoming(begin, before);
  ++depth_;
  body(v);
  --depth_;
  Value* next =
      b_.CreateAdd(v, llvm::ConstantInt::get(v->getType(), step), "", /*HasNUW=*/true, /*HasNSW=*/true);
  v->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, done);
  done->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(done);
}

void LlvmKernelEmitter::EmitUnrolled(const For& loop) {
  switch (loop.marks.form) {
    case LaneForm::kInterleaves: return EmitInterleaved(loop);
    case LaneForm::kTurns: return EmitTransposed(loop);
    case LaneForm::kTurnsGroups: return EmitTurnedGroups(loop);
    default: break;
  }
  for (int64_t v = 0; v < *ConstExtent(loop); ++v) {
    With(loop.var.get(), b_.getInt64(v), [&] { Statement(loop.body); });
  }
}

void LlvmKernelEmitter::EmitIf(const If& branch) {
  Value* condition = Emit(branch.condition);
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return Statement(constant->isZero() ? branch.otherwise : branch.then);
  if (IsVector(condition)) {
    UnderMask(condition, [&] { Statement(branch.then); });
    if (branch.otherwise) UnderMask(b_.CreateNot(condition), [&] { Statement(branch.otherwise); });
    return;
  }
  b_.Branch(
      condition, [&] { Statement(branch.then); }, [&] { Statement(branch.otherwise); });
}

llvm::AllocaInst* LlvmKernelEmitter::OnStack(llvm::Type* type) {
  const Builder::InsertPointGuard guard(b_);
  b_.SetInsertPoint(entry_, entry_->begin());
  return b_.CreateAlloca(type);
}

llvm::AllocaInst* LlvmKernelEmitter::BytesOnStack(int64_t bytes) {
  llvm::AllocaInst* memory = OnStack(llvm::ArrayType::get(b_.getInt8Ty(), bytes));
  memory->setAlignment(llvm::Align(kLine));
  return memory;
}

// Inside a vector loop each lane has its own buffer. The buffers are interleaved, so that one element of all
// lanes is a vector.
void LlvmKernelEmitter::EmitAlloc(const Alloc& alloc) {
  Place place{.over_read = true,
              .on_stack = true,
              .read_columns = alloc.read_columns,
              .lanes = lanes_ ? lanes_->count : 0};
  if (alloc.read_columns == Alloc::kAllColumns && alloc.buffer->rank() > 0)
    place.read_columns = alloc.buffer->shape.back();
  const int64_t bytes = alloc.buffer->bytes() * std::max(place.lanes, 1) + kSlack;
  llvm::AllocaInst* memory = BytesOnStack(bytes);
  place.pointer = memory;
  places_[alloc.buffer.get()] = place;
  b_.CreateLifetimeStart(memory, b_.getInt64(bytes));
  Statement(alloc.body);
  b_.CreateLifetimeEnd(memory, b_.getInt64(bytes));
  places_.erase(alloc.buffer.get());
}

void LlvmKernelEmitter::EmitStore(const Store& store) {
  PlaceOf(store.buffer);  // its pointer is loaded before those of what it reads
  if (store.flushes && lanes_ && b_.CanRoundToBF16(lanes_->count)) {
    const Access access = AccessOf(store);
    return StoreAccess(access, b_.RoundedToBF16(EmitWide(store.value->args[0])));
  }
  Value* value = Emit(store.value);
  if (lanes_) {
    for (const auto& [load, elements] : store.fetches) Fetch(ElementAt(AccessOf(*load), elements));
  }
  Access access = AccessOf(store);
  access.nontemporal = BypassesCaches(store);
  StoreAccess(access, b_.ToMemory(access.dtype, value));
}

// A tensor's alignment is known only in each call, so the statement is emitted twice:
//
//   if (every output begins at a cache line) { body, with such stores; fence } else { body }
void LlvmKernelEmitter::EmitBypass(const Bypass& bypass) {
  Value* bits = b_.getInt64(0);
  for (const Buffer& buffer : bypass.outputs)
    bits = b_.CreateOr(bits, b_.CreatePtrToInt(PlaceOf(buffer).pointer, b_.getInt64Ty()));
  Value* at_lines = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt64(kLine - 1)), b_.getInt64(0));
  b_.Branch(
      at_lines,
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
  if (bypasses_) b_.CreateIntrinsic(intrinsic::x86_sse_sfence, {}, {});
}

// Whether the running lanes' store bypasses the caches.
bool LlvmKernelEmitter::BypassesCaches(const Store& store) const {
  return bypasses_ && lanes_ && lanes_->count <= store.bypass_lanes &&
         lanes_->count * DTypeBytes(store.buffer->dtype) >= kLeastBypassBytes;
}

}  // namespace mycc
