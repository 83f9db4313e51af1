// Makes LLVM's TargetMachine for a target, and runs LLVM's passes on a module. Thread rule: functions are
// re-entrant; a module and its machine have one owner.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace mycc {

// InvalidArgument for a CPU or feature that LLVM does not know.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target);

// Gives a function of the module the attributes that it needs to be compiled for the target.
void SetTargetAttributes(const llvm::TargetMachine& machine, const Target& target, llvm::Function* function);

// Runs a short pipeline. The emitted code is already unrolled and vectorized, so it needs mem2reg, common
// subexpression elimination and hoisting of loop invariants, but no loop transformations.
void OptimizeModule(llvm::TargetMachine& machine, llvm::Module* module);

}  // namespace mycc
