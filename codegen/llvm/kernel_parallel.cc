// Emits parallel loops as functions that the threads of an OpenMP team call, each for a part of the
// iterations.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/kernel_flow.h"
#include "codegen/passes/stmt_facts.h"
#include "llvm/IR/Module.h"

namespace mycc {
namespace {

using llvm::Value;

// The order does not depend on addresses.
template <typename Node>
void SortByName(std::vector<const Node*>* nodes) {
  std::sort(nodes->begin(), nodes->end(), [](const Node* a, const Node* b) { return a->name < b->name; });
}

}  // namespace

// Directly nested parallel loops are one index space, so that an outer loop of few iterations can use more
// threads.
void LlvmKernelEmitter::EmitParallel(const For& loop) {
  std::vector<const For*> loops;
  int64_t trips = 1;
  const For* next = &loop;
  while (next != nullptr && next->loop_kind == LoopKind::kParallel && ConstExtent(*next)) {
    loops.push_back(next);
    trips *= *ConstExtent(*next);
    next = DynAs<For>(next->body);
  }
  EmitRegion(loops, trips, loops.back()->body);
}

// The values of this function that the code of a region uses.
LlvmKernelEmitter::Captures LlvmKernelEmitter::CapturesOf(const Stmt& body) const {
  const BufferSet buffers = BuffersUnder(body);
  Captures captures;
  for (const auto& [var, variable] : vars_) {
    const bool is_used = AnyStmt(body, [used = var](const Stmt& stmt) { return UsesVar(stmt, used); });
    if (is_used && !llvm::isa<llvm::Constant>(variable.value)) captures.vars.push_back(var);
  }
  for (const auto& [buffer, place] : places_) {
    if (buffers.count(buffer) && place.on_stack) captures.buffers.push_back(buffer);
  }
  SortByName(&captures.vars);
  SortByName(&captures.buffers);
  captures.values = {arguments_.tensors, arguments_.shared, arguments_.threads};
  for (const VarNode* var : captures.vars) captures.values.push_back(vars_.at(var).value);
  for (const BufferNode* buffer : captures.buffers) captures.values.push_back(places_.at(buffer).pointer);
  return captures;
}

// A function of one pointer, with this function's attributes but not those of its parameters.
llvm::Function* LlvmKernelEmitter::DeclareRegion() {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  auto* region =
      llvm::Function::Create(type, llvm::Function::InternalLinkage,
                             absl::StrCat(kernel_.symbol, "_region", kernel_.regions++), kernel_.module);
  region->addFnAttrs(llvm::AttrBuilder(b_.getContext(), function_->getAttributes().getFnAttrs()));
  return region;
}

// Emits the loops as a function that each thread of a team calls for one contiguous part of the iterations.
// Variables and buffers of this function that the new one uses are passed in a struct on the stack.
void LlvmKernelEmitter::EmitRegion(const std::vector<const For*>& loops, int64_t trips, const Stmt& body) {
  llvm::LLVMContext& context = b_.getContext();
  const Captures captures = CapturesOf(body);
  const std::vector<Value*>& captured = captures.values;
  llvm::SmallVector<llvm::Type*, 8> fields;
  for (Value* value : captured) fields.push_back(value->getType());
  auto* record_type = llvm::StructType::get(context, fields);
  llvm::AllocaInst* record = OnStack(record_type);
  for (size_t i = 0; i < captured.size(); ++i)
    b_.CreateStore(captured[i], b_.CreateStructGEP(record_type, record, i));

  llvm::Function* const region = DeclareRegion();
  Builder entry(llvm::BasicBlock::Create(context, "entry", region),
                llvm::TargetFolder(kernel_.module.getDataLayout()));
  std::vector<Value*> received;
  for (size_t i = 0; i < captured.size(); ++i) {
    received.push_back(entry.CreateLoad(fields[i], entry.CreateStructGEP(record_type, region->getArg(0), i)));
  }
  const auto omp_number = [&](const char* name) {
    auto callee =
        kernel_.module.getOrInsertFunction(name, llvm::FunctionType::get(entry.getInt32Ty(), false));
    return entry.CreateSExt(entry.CreateCall(callee), entry.getInt64Ty());
  };
  Value* thread = omp_number("omp_get_thread_num");
  Value* threads = omp_number("omp_get_num_threads");

  LlvmKernelEmitter inner(kernel_, region, Arguments{received[0], received[1], received[2], thread});
  inner.in_region_ = true;
  inner.bypasses_ = bypasses_;
  for (const auto& [var, variable] : vars_) {
    if (llvm::isa<llvm::Constant>(variable.value)) inner.vars_[var] = Variable{variable.value, 0};
  }
  size_t at = 3;
  for (const VarNode* var : captures.vars) inner.vars_[var] = Variable{received[at++], 0};
  for (const BufferNode* buffer : captures.buffers) {
    Place place = places_.at(buffer);
    place.pointer = received[at++];
    place.on_stack = false;  // the team shares it
    inner.places_[buffer] = place;
  }
  inner.EmitShare(loops, trips, thread, threads, body);

  auto* parallel_type = llvm::FunctionType::get(
      b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty()}, false);
  after_regions_.push_back(b_.CreateCall(kernel_.module.getOrInsertFunction("GOMP_parallel", parallel_type),
                                         {region, record, b_.getInt32(0), b_.getInt32(0)}));
}

// Emits one thread's share of the iterations: trips / threads of them, and one more for the first trips %
// threads threads.
void LlvmKernelEmitter::EmitShare(const std::vector<const For*>& loops, int64_t trips, Value* thread,
                                  Value* threads, const Stmt& body) {
  Value* all = b_.getInt64(trips);
  Value* each = b_.CreateUDiv(all, threads);
  Value* more = b_.CreateURem(all, threads);
  Value* extra = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, thread, more);
  Value* begin = b_.CreateAdd(b_.CreateMul(thread, each), extra);
  Value* own = b_.CreateAdd(each, b_.CreateZExt(b_.CreateICmpULT(thread, more), b_.getInt64Ty()));
  EmitLoop(b_, begin, b_.CreateAdd(begin, own), 1, /*runs_once=*/false, [&](Value* v) {
    ++depth_;
    Value* rest = v;
    for (size_t i = loops.size(); i-- > 0;) {
      Value* extent = b_.getInt64(*ConstExtent(*loops[i]));
      vars_[loops[i]->var.get()] = Variable{i == 0 ? rest : b_.CreateURem(rest, extent), depth_};
      rest = b_.CreateUDiv(rest, extent);
    }
    Statement(body);
    --depth_;
  });
  EmitStoreFence();
  Return();
}

}  // namespace mycc
