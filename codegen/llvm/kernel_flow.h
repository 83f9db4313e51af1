// Helpers that write branches in LLVM IR.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

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
