// Emits parallel loops as functions that the threads of an OpenMP team call, each for a part of the
// iterations.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {

// Gives `inner` the variables and buffers of this function that its body uses, in the order of their names:
// it does not depend on addresses. Returns the values that it receives only when it runs.
std::vector<Value**> LlvmKernelEmitter::Capture(const Stmt& body, LlvmKernelEmitter* inner) const {
  std::vector<Value**> values = {&inner->arguments_.tensors, &inner->arguments_.shared,
                                 &inner->arguments_.threads};
  std::vector<const VarNode*> vars;
  for (const auto& [var, variable] : vars_) {
    if (AnyStmt(body, [used = var](const Stmt& stmt) { return UsesVar(stmt, used); })) vars.push_back(var);
  }
  std::ranges::sort(vars, {}, &VarNode::name);
  for (const VarNode* var : vars) {
    Variable& variable = inner->vars_[var] = {vars_.at(var).value, 0};
    if (!llvm::isa<llvm::Constant>(variable.value)) values.push_back(&variable.value);
  }
  std::vector<const BufferNode*> buffers;
  for (const BufferNode* buffer : BuffersUnder(body)) {
    const auto place = places_.find(buffer);
    if (place != places_.end() && place->second.on_stack) buffers.push_back(buffer);
  }
  std::ranges::sort(buffers, {}, &BufferNode::name);
  for (const BufferNode* buffer : buffers) {
    Place& place = inner->places_[buffer] = places_.at(buffer);
    place.on_stack = false;  // the team shares it
    values.push_back(&place.pointer);
  }
  return values;
}

// Emits the loops as a function that each thread of a team calls for one contiguous part of the iterations.
// Directly nested parallel loops are one index space, so that an outer loop of few iterations can use more
// threads. The values of this function that the new one uses are passed in a struct on the stack.
void LlvmKernelEmitter::EmitParallel(const For& loop) {
  std::vector<const For*> loops;
  for (const For* next = &loop;
       next != nullptr && next->loop_kind == LoopKind::kParallel && ConstExtent(*next);
       next = DynAs<For>(next->body)) {
    loops.push_back(next);
  }
  // This function's attributes, but not those of its parameters.
  auto* region =
      llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, /*isVarArg=*/false),
                             llvm::Function::InternalLinkage,
                             absl::StrCat(kernel_.symbol, "_region", kernel_.regions++), kernel_.module);
  region->addFnAttrs(llvm::AttrBuilder(b_.getContext(), function_->getAttributes().getFnAttrs()));
  LlvmKernelEmitter inner(kernel_, region, arguments_);
  inner.in_region_ = true;
  inner.bypasses_ = bypasses_;
  const std::vector<Value**> captured = Capture(loops.back()->body, &inner);
  llvm::SmallVector<llvm::Type*, 8> fields;
  for (Value** value : captured) fields.push_back((*value)->getType());
  auto* record_type = llvm::StructType::get(b_.getContext(), fields);
  llvm::AllocaInst* record = OnStack(record_type);
  for (size_t i = 0; i < captured.size(); ++i)
    b_.CreateStore(*captured[i], b_.CreateStructGEP(record_type, record, i));
  inner.EmitShare(loops, record_type, captured);

  const llvm::FunctionCallee parallel = kernel_.module.getOrInsertFunction(
      "GOMP_parallel", b_.getVoidTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty());
  after_regions_.push_back(b_.CreateCall(parallel, {region, record, b_.getInt32(0), b_.getInt32(0)}));
}

// Emits one thread's share of the iterations: trips / threads of them, and one more for the first trips %
// threads threads. First this function receives its values from the struct.
void LlvmKernelEmitter::EmitShare(const std::vector<const For*>& loops, llvm::StructType* record,
                                  const std::vector<Value**>& captured) {
  const auto omp_number = [&](const char* name) {
    const llvm::FunctionCallee callee = kernel_.module.getOrInsertFunction(name, b_.getInt32Ty());
    return b_.CreateSExt(b_.CreateCall(callee), b_.getInt64Ty());
  };
  Value* threads = nullptr;
  {
    const Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_->getTerminator());
    for (unsigned i = 0; i < captured.size(); ++i) {
      *captured[i] =
          b_.CreateLoad(record->getElementType(i), b_.CreateStructGEP(record, function_->getArg(0), i));
    }
    arguments_.thread = omp_number("omp_get_thread_num");
    threads = omp_number("omp_get_num_threads");
  }
  Value* const thread = arguments_.thread;
  int64_t trips = 1;
  for (const For* loop : loops) trips *= *ConstExtent(*loop);
  Value* all = b_.getInt64(trips);
  Value* each = b_.CreateUDiv(all, threads);
  Value* more = b_.CreateURem(all, threads);
  Value* extra = b_.CreateBinaryIntrinsic(intrinsic::umin, thread, more);
  Value* begin = b_.CreateAdd(b_.CreateMul(thread, each), extra);
  Value* own = b_.CreateAdd(each, b_.CreateZExt(b_.CreateICmpULT(thread, more), b_.getInt64Ty()));
  EmitLoop(begin, b_.CreateAdd(begin, own), 1, /*runs_once=*/false, [&](Value* v) {
    Value* rest = v;
    for (size_t i = loops.size(); i-- > 0;) {
      Value* extent = b_.getInt64(*ConstExtent(*loops[i]));
      vars_[loops[i]->var.get()] = Variable{i == 0 ? rest : b_.CreateURem(rest, extent), depth_};
      rest = b_.CreateUDiv(rest, extent);
    }
    Statement(loops.back()->body);
  });
  EmitStoreFence();
  Return();
}

}  // namespace mycc
