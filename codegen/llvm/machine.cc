#include "codegen/llvm/machine.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/SubtargetFeature.h"

namespace mycc {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
// Features of some AMD processors that targets cannot name. They are disabled, so that code for such a
// processor runs on every machine that IsCompatible permits.
constexpr char kNeverUsed[] = "-sse4a,-xop,-fma4,-tbm";
// LICM moves stores of accumulators out of the loops that add to them, so that accumulators become registers.
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
  if (!info->isCPUStringValid(target.mcpu)) {
    return absl::InvalidArgumentError(absl::StrCat("LLVM knows no x86-64 CPU called '", target.mcpu, "'"));
  }
  for (const std::string& feature : target.features) {
    const std::string name = feature.substr(feature.find_first_not_of("+-"));
    if (llvm::none_of(info->getAllProcessorFeatures(), [&](const auto& row) { return name == row.Key; }))
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
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      kTriple, target.mcpu, FeaturesOfCode(target), llvm::TargetOptions(), llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
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

  llvm::ModulePassManager pipeline;
  llvm::Error error = builder.parsePassPipeline(pipeline, kPasses);
  MYCC_CHECK(!error) << "LLVM's passes: " << llvm::toString(std::move(error));
  pipeline.run(*module, modules);
}

}  // namespace mycc
