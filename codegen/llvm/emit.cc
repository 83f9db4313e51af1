#include "codegen/llvm/emit.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/ir/debug.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/machine.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace mycc {
namespace {

// Emits void SYMBOL(tensors, shared_workspace, thread_workspaces), which thread 0 of a team runs.
void EmitBody(llvm::Module& module, const llvm::TargetMachine& machine, const Target& target,
              const std::string& symbol, const KernelLayout& layout, const Stmt& body) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->setVisibility(llvm::Function::HiddenVisibility);
  SetTargetAttributes(machine, target, function);
  for (llvm::Argument& argument : function->args()) argument.addAttr(llvm::Attribute::NoAlias);

  const std::vector<AliasScope> scopes = AliasScopesOf(context, symbol, layout.alias_groups);
  KernelContext kernel{
      module, layout, scopes, FeaturesOf(target), VectorBytes(target), VectorRegisters(target), symbol};
  llvm::Value* first_thread = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), 0);
  LlvmKernelEmitter(kernel, function,
                    {function->getArg(0), function->getArg(1), function->getArg(2), first_thread})
      .Body(body);
}

absl::StatusOr<std::string> Codegen(llvm::TargetMachine& machine, llvm::Module& module,
                                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return absl::InternalError("LLVM cannot emit this kind of file for x86-64");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

std::string LlvmToolchain() { return absl::StrCat("llvm-", LLVM_VERSION_STRING); }

absl::StatusOr<std::string> EmitModule(const std::vector<EmitUnit>& units, const Target& target,
                                       EmitKind kind) {
  if (target.kind != TargetKind::kCpu)
    return absl::InvalidArgumentError(
        absl::StrCat("the target is ", PrintTarget(target), "; the LLVM back end expects a cpu target"));
  const TimedStep timed("emit_llvm", [&] {
    return absl::StrJoin(units, " ", [](std::string* out, const EmitUnit& unit) { *out += unit.symbol; });
  });
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<llvm::TargetMachine> machine, MakeMachine(target));
  llvm::LLVMContext context;
  context.setDiscardValueNames(kind == EmitKind::kObject);
  llvm::Module module("mycc", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  for (const EmitUnit& unit : units) {
    const LoweredFunction& lowered = unit.lowered;
    EmitBody(module, *machine, target, unit.symbol + "_body", LayoutOf(lowered, ArgumentsOfKernel(lowered)),
             lowered.kernel.body);
    EmitBody(module, *machine, target, unit.symbol + "_pack_body",
             LayoutOf(lowered, ArgumentsOfPack(lowered)), lowered.pack.body);
  }
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream))
    return absl::InternalError(absl::StrCat("the emitted code is malformed: ", problem));
  OptimizeModule(*machine, &module);
  switch (kind) {
    case EmitKind::kObject: return Codegen(*machine, module, llvm::CodeGenFileType::ObjectFile);
    case EmitKind::kAssembly: return Codegen(*machine, module, llvm::CodeGenFileType::AssemblyFile);
    case EmitKind::kLlvmIr: break;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace mycc
