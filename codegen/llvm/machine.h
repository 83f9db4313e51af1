// LLVM's TargetMachine for a target, and the LLVM passes that run on a module. Only these files and emit.cc
// use TargetMachine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace mycc {

// InvalidArgument for a CPU or feature that LLVM does not know.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target);

// Gives a function of the module the attributes that it needs to be compiled for the target.
void SetTargetAttributes(const llvm::TargetMachine& machine, const Target& target, llvm::Function* function);

// A short pipeline: the code arrives unrolled and in vectors, so it needs registers, common subexpressions
// and loop invariants, and no loop transformation.
void OptimizeModule(llvm::TargetMachine& machine, llvm::Module* module);

}  // namespace mycc
