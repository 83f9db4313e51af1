// Emits loops, conditions, allocations and stores. Vector loops, products and copies have files of their own.
#include <algorithm>

#include "base/check.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/kernel_flow.h"
#include "codegen/llvm/loop_facts.h"
#include "codegen/passes/stmt_facts.h"
#include "llvm/IR/Module.h"

namespace mycc {
namespace {

using llvm::Value;

// Loops over a register tile are unrolled up to this extent even without an unroll mark, because registers
// have no addresses.
constexpr int64_t kMaxTileUnroll = 64;
// A tile on the stack may be read this far past its end.
constexpr int64_t kSlack = 64;

// The number of leading elements of the buffer's last dimension that are read.
int64_t ColumnsRead(const Alloc& alloc) {
  if (alloc.buffer->rank() == 0) return 1;
  int64_t columns = 0;
  const auto read_to = [&](const Expr& index, int64_t width) {
    const auto range = RangeOf(index);
    columns = std::max(columns, range ? std::min(range->max + width, alloc.buffer->shape.back())
                                      : alloc.buffer->shape.back());
  };
  VisitStmts(alloc.body, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) {
        if (e.op == Op::kLoad && e.buffer == alloc.buffer) read_to(e.args.back(), 1);
      });
    });
    if (const Mma* mma = DynAs<Mma>(stmt)) {
      for (const TileView* view : {&mma->a, &mma->b}) {
        if (view->buffer == alloc.buffer) columns = alloc.buffer->shape.back();
      }
      if (mma->acc.buffer == alloc.buffer) read_to(mma->acc.indices.back(), mma->n);
    }
    return true;
  });
  return columns;
}

}  // namespace

LlvmKernelEmitter::LlvmKernelEmitter(KernelContext& kernel, llvm::Function* function,
                                     const Arguments& arguments)
    : kernel_(kernel),
      function_(function),
      arguments_(arguments),
      b_(kernel.module.getContext(), llvm::TargetFolder(kernel.module.getDataLayout())),
      numbers_(b_, kernel.features),
      entry_(&function->getEntryBlock()),
      memo_(1) {
  // contract: a product and its sum may be rounded once. No reassoc: only reductions are reassociated, by
  // passes, and (x + big) - big keeps its meaning. No arcp: the reciprocal of a subnormal number is infinite,
  // and LLVM's refined estimates are wrong for zero and infinity.
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  b_.setFastMathFlags(flags);
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
  memo_.assign(1, {});
  if (EmitProductRegion(stmt)) return;
  switch (stmt->kind) {
    case StmtKind::kSeq: return EmitSequence(As<Seq>(stmt));
    case StmtKind::kFor: return EmitFor(As<For>(stmt));
    case StmtKind::kIf: return EmitIf(As<If>(stmt));
    case StmtKind::kAlloc: return EmitAlloc(As<Alloc>(stmt));
    case StmtKind::kStore: return EmitStore(As<Store>(stmt));
    case StmtKind::kMma: return EmitMma(As<Mma>(stmt));
    default: break;
  }
  MYCC_CHECK(false) << "a CPU kernel has no pipelines: " << PrintStmt(stmt);
}

void LlvmKernelEmitter::EmitFor(const For& loop) {
  if (loop.marks.nontemporal && nontemporal_.empty()) return EmitNontemporal(loop);
  if (loop.marks.fetches_next && !fetching_) return EmitFetching(loop);
  EmitIterations(loop);
}

void LlvmKernelEmitter::EmitIterations(const For& loop) {
  const auto extent = ConstExtent(loop);
  if (extent == 0) return;
  if (extent == 1) return With(loop.var.get(), b_.getInt64(0), [&] { Statement(loop.body); });
  if (loop.loop_kind == LoopKind::kParallel && !in_region_ && !lanes_) return EmitParallel(loop);
  if (loop.loop_kind == LoopKind::kVector && !lanes_) return EmitVectorLoop(loop);
  if (extent &&
      (loop.loop_kind == LoopKind::kUnroll || (*extent <= kMaxTileUnroll && IndexesAccumulator(loop)))) {
    return EmitUnrolled(loop);
  }
  Value* end = extent ? b_.getInt64(*extent) : Emit(loop.extent);
  EmitLoop(b_, b_.getInt64(0), end, 1, extent.has_value(), [&](Value* v) {
    const double runs = runs_;
    ++depth_;
    runs_ *= static_cast<double>(extent.value_or(1));
    With(loop.var.get(), v, [&] { Statement(loop.body); });
    runs_ = runs;
    --depth_;
  });
}

void LlvmKernelEmitter::EmitUnrolled(const For& loop) {
  if (!lanes_ && (EmitTurnedGroups(loop) || EmitInterleaved(loop) || EmitTransposed(loop))) return;
  for (int64_t v = 0; v < *ConstExtent(loop); ++v) {
    With(loop.var.get(), b_.getInt64(v), [&] { Statement(loop.body); });
  }
}

void LlvmKernelEmitter::EmitIf(const If& branch) {
  Value* condition = Emit(branch.condition);
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!constant->isZero()) return Statement(branch.then);
    if (branch.otherwise) Statement(branch.otherwise);
    return;
  }
  if (condition->getType()->isVectorTy()) return EmitMaskedIf(branch, condition);
  EmitBranch(
      b_, condition, [&] { Statement(branch.then); },
      [&] {
        if (branch.otherwise) Statement(branch.otherwise);
      });
}

void LlvmKernelEmitter::EmitMaskedIf(const If& branch, Value* condition) {
  const Lanes outer = *lanes_;
  const auto under = [&](Value* mask, const Stmt& stmt) {
    lanes_->mask = outer.mask ? b_.CreateAnd(outer.mask, mask) : mask;
    lanes_->mask_is_prefix = false;
    Statement(stmt);
    lanes_ = outer;
  };
  under(condition, branch.then);
  if (branch.otherwise) under(b_.CreateNot(condition), branch.otherwise);
}

// Inside a vector loop each lane has its own buffer. The buffers are interleaved, so that one element of all
// lanes is a vector.
void LlvmKernelEmitter::EmitAlloc(const Alloc& alloc) {
  Place place;
  place.on_stack = true;
  place.over_read = true;
  place.lanes = lanes_ ? lanes_->count : 0;
  place.read_columns = ColumnsRead(alloc);
  const int64_t bytes = alloc.buffer->bytes() * std::max(place.lanes, 1) + kSlack;
  llvm::AllocaInst* memory = nullptr;
  {
    const Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_, entry_->begin());
    memory = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes));
    memory->setAlignment(llvm::Align(64));
  }
  place.pointer = memory;
  places_[alloc.buffer.get()] = place;
  b_.CreateLifetimeStart(memory, b_.getInt64(bytes));
  Statement(alloc.body);
  b_.CreateLifetimeEnd(memory, b_.getInt64(bytes));
  places_.erase(alloc.buffer.get());
}

void LlvmKernelEmitter::EmitStore(const Store& store) {
  Value* value = Emit(store.value);
  if (fetching_ && lanes_) FetchNext(store.value);
  StoreAccess(AccessOf(store.buffer, store.indices, &store), value);
}

}  // namespace mycc
