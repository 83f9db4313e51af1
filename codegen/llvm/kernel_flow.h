// Helpers that write loops and branches in LLVM IR.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

// for (v = begin; v < end; v += step) body(v), with the test at the end. `runs_once` says that begin < end is
// known.
template <typename BodyFn>
void EmitLoop(Builder& b, llvm::Value* begin, llvm::Value* end, int64_t step, bool runs_once,
              const BodyFn& body) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(b.getContext(), "loop", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(b.getContext(), "done", function);
  llvm::BasicBlock* before = b.GetInsertBlock();
  if (runs_once) {
    b.CreateBr(loop);
  } else {
    b.CreateCondBr(b.CreateICmpSLT(begin, end), loop, done);
  }
  b.SetInsertPoint(loop);
  llvm::PHINode* v = b.CreatePHI(begin->getType(), 2);
  v->addIncoming(begin, before);
  body(static_cast<llvm::Value*>(v));
  llvm::Value* next =
      b.CreateAdd(v, llvm::ConstantInt::get(v->getType(), step), "", /*HasNUW=*/true, /*HasNSW=*/true);
  v->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), loop, done);
  done->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(done);
}

// `weights` says which arm is likely; null for neither.
template <typename ThenFn, typename ElseFn>
void EmitBranch(Builder& b, llvm::Value* condition, const ThenFn& then, const ElseFn& otherwise,
                llvm::MDNode* weights = nullptr) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* blocks[2] = {llvm::BasicBlock::Create(b.getContext(), "then", function),
                                 llvm::BasicBlock::Create(b.getContext(), "else", function)};
  llvm::BasicBlock* join = llvm::BasicBlock::Create(b.getContext(), "join", function);
  b.CreateCondBr(condition, blocks[0], blocks[1], weights);
  b.SetInsertPoint(blocks[0]);
  then();
  b.CreateBr(join);
  b.SetInsertPoint(blocks[1]);
  otherwise();
  b.CreateBr(join);
  b.SetInsertPoint(join);
}

// The same for arms that return values of one type: the value of the arm that runs.
template <typename ThenFn, typename ElseFn>
llvm::Value* EmitChoice(Builder& b, llvm::Value* condition, const ThenFn& then, const ElseFn& otherwise,
                        llvm::MDNode* weights = nullptr) {
  llvm::Value* values[2];
  llvm::BasicBlock* ends[2];
  const auto keep = [&](int arm, llvm::Value* value) {
    values[arm] = value;
    ends[arm] = b.GetInsertBlock();
  };
  EmitBranch(
      b, condition, [&] { keep(0, then()); }, [&] { keep(1, otherwise()); }, weights);
  llvm::PHINode* chosen = b.CreatePHI(values[0]->getType(), 2);
  for (int arm = 0; arm < 2; ++arm) chosen->addIncoming(values[arm], ends[arm]);
  return chosen;
}

}  // namespace mycc
