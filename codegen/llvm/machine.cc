#include "codegen/llvm/machine.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

namespace mycc {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
// Features of some AMD processors that targets cannot name. They are disabled, so that code for such a
// processor runs on every machine that IsCompatible permits.
constexpr char kNeverUsed[] = "-sse4a,-xop,-fma4,-tbm";

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
  if (!info->isCPUStringValid(target.mcpu)) {
    return absl::InvalidArgumentError(absl::StrCat("LLVM knows no x86-64 CPU called '", target.mcpu, "'"));
  }
  for (const std::string& feature : target.features) {
    const std::string name = feature.substr(feature.find_first_not_of("+-"));
    bool known = false;
    for (const llvm::SubtargetFeatureKV& row : info->getAllProcessorFeatures()) known |= name == row.Key;
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat("LLVM knows no x86-64 feature called '", name, "'"));
  }
  return absl::OkStatus();
}

std::string FeaturesOfCode(const Target& target) {
  std::vector<std::string> features = target.features;
  features.push_back(kNeverUsed);
  return absl::StrJoin(features, ",");
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target) {
  InitializeX86();
  std::string error;
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (registered == nullptr) return absl::InternalError(absl::StrCat("LLVM: ", error));
  if (absl::Status status = CheckNames(*registered, target); !status.ok()) return status;
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      kTriple, target.mcpu, FeaturesOfCode(target), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
  if (!machine) return absl::InternalError("LLVM makes no machine for x86-64");
  return machine;
}

void SetTargetAttributes(const llvm::TargetMachine& machine, const Target& target, llvm::Function* function) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", machine.getTargetCPU());
  function->addFnAttr("target-features", machine.getTargetFeatureString());
  function->addFnAttr("prefer-vector-width", std::to_string(8 * VectorBytes(target)));
  function->addFnAttr("frame-pointer", "none");
}

void OptimizeModule(llvm::TargetMachine& machine, llvm::Module* module) {
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

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  // Moves stores of accumulators out of the loops that add to them, so that accumulators become registers.
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::DCEPass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  pipeline.run(*module, modules);
}

}  // namespace mycc
