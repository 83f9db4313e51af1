#include "codegen/llvm/emit.h"

#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/debug.h"
#include "codegen/llvm/kernel_emitter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/SubtargetFeature.h"

namespace mycc {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
// Features of some AMD processors that targets cannot name. They are disabled, so that code for such a
// processor runs on every machine that IsCompatible permits.
constexpr char kNeverUsed[] = "-sse4a,-xop,-fma4,-tbm";
// A short pipeline. The emitted code is already unrolled and vectorized, so it needs mem2reg, common
// subexpression elimination and hoisting of loop invariants, but no loop transformations. LICM moves stores
// of accumulators out of the loops that add to them, so that accumulators become registers.
constexpr char kPasses[] =
    "function(sroa<modify-cfg>,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,dce)";

void InitializeX86() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

// LLVM itself only prints a warning about unknown names to the standard error.
absl::Status CheckNames(const llvm::Target& registered, const Target& target) {
  const std::unique_ptr<llvm::MCSubtargetInfo> info(registered.createMCSubtargetInfo(kTriple, "", ""));
  if (!info->isCPUStringValid(target.mcpu))
    return absl::InvalidArgumentError(absl::StrCat("LLVM knows no x86-64 CPU called '", target.mcpu, "'"));
  for (const std::string& feature : target.features) {
    const std::string name = feature.substr(feature.find_first_not_of("+-"));
    if (llvm::none_of(info->getAllProcessorFeatures(), [&](const auto& row) { return name == row.Key; }))
      return absl::InvalidArgumentError(absl::StrCat("LLVM knows no x86-64 feature called '", name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target) {
  InitializeX86();
  std::string error;
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (registered == nullptr) return absl::InternalError(absl::StrCat("LLVM: ", error));
  if (absl::Status status = CheckNames(*registered, target); !status.ok()) return status;
  // LLVM takes no notice of the empty name where the target has no features.
  const std::string features = absl::StrCat(absl::StrJoin(target.features, ","), ",", kNeverUsed);
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      kTriple, target.mcpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
  if (!machine) return absl::InternalError("LLVM makes no machine for x86-64");
  return machine;
}

// Emits void SYMBOL(tensors, shared_workspace, thread_workspaces), which thread 0 of a team runs.
void EmitBody(llvm::Module& module, const llvm::TargetMachine& machine, const Target& target,
              const std::string& symbol, const KernelLayout& layout, const Stmt& body) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->setVisibility(llvm::Function::HiddenVisibility);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", machine.getTargetCPU());
  function->addFnAttr("target-features", machine.getTargetFeatureString());
  function->addFnAttr("prefer-vector-width", std::to_string(8 * VectorBytes(target)));
  function->addFnAttr("frame-pointer", "none");
  for (llvm::Argument& argument : function->args()) argument.addAttr(llvm::Attribute::NoAlias);

  const std::vector<AliasScope> scopes = AliasScopesOf(context, symbol, layout.alias_groups);
  KernelContext kernel{
      module, layout, scopes, FeaturesOf(target), VectorBytes(target), VectorRegisters(target), symbol};
  Value* first_thread = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), 0);
  LlvmKernelEmitter(kernel, function,
                    {function->getArg(0), function->getArg(1), function->getArg(2), first_thread})
      .Body(body);
}

void OptimizeModule(llvm::TargetMachine& machine, llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  llvm::ModulePassManager pipeline;
  llvm::Error error = builder.parsePassPipeline(pipeline, kPasses);
  MYCC_CHECK(!error) << "LLVM's passes: " << llvm::toString(std::move(error));
  pipeline.run(module, modules);
}

absl::StatusOr<std::string> Codegen(llvm::TargetMachine& machine, llvm::Module& module,
                                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    return absl::InternalError("LLVM cannot emit this kind of file for x86-64");
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
  for (const auto& [symbol, lowered] : units) {
    EmitBody(module, *machine, target, symbol + "_body", LayoutOf(lowered, ArgumentsOfKernel(lowered)),
             lowered.kernel.body);
    EmitBody(module, *machine, target, symbol + "_pack_body", LayoutOf(lowered, ArgumentsOfPack(lowered)),
             lowered.pack.body);
  }
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream))
    return absl::InternalError(absl::StrCat("the emitted code is malformed: ", problem));
  OptimizeModule(*machine, module);
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
