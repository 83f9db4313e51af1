#include "codegen/artifact/program_glue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/artifact/cpu_needs.h"
#include "codegen/artifact/glue.h"
#include "codegen/artifact/glue_module.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/program/memory_plan.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc {
namespace {

static_assert(sizeof(MyccTensor) == 5 * 8);

std::string StepsSymbol(const Entry& entry) { return entry.symbol + "_steps"; }

// A single parallel kernel forks its own team.
bool RunsInTeam(const ProgramSpec& spec) {
  return std::ranges::count_if(spec.program.launches, [&](const auto& launch) {
           return launch.kernel >= 0 ? spec.kernels[launch.kernel].lowered.parallel
                                     : RunsInParallel(launch.call.function);
         }) > 1;
}

// Emits the launches as one function: void MODULE_run_steps(void* const* tensors, uint8_t* shared, uint8_t*
// threads).
class BodyEmitter {
 public:
  BodyEmitter(const ProgramSpec& spec, const std::string& symbol, const WeightLayout& weights,
              GlueModule* glue)
      : spec_(spec),
        weights_(weights),
        glue_(*glue),
        b_(glue->DefineHidden(symbol, glue->BodyType())),
        function_(b_.GetInsertBlock()->getParent()),
        weights_symbol_(glue->HiddenData(WeightsSymbol(spec))) {}

  void Run() {
    size_t most = 1;
    for (const KernelLaunch& launch : spec_.program.launches) most = std::max(most, launch.tensors.size());
    llvm::Type* pointer = b_.getPtrTy();
    pointers_ = b_.CreateAlloca(llvm::ArrayType::get(pointer, most));
    rows_ = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), 5 * most));
    if (spec_.profile) ExportProfile();
    Mark(0);
    for (size_t i = 0; i < spec_.program.launches.size(); ++i) {
      const KernelLaunch& launch = spec_.program.launches[i];
      launch.kernel < 0 ? CallLibrary(launch, i) : CallKernel(launch, i);
      Mark(i + 1);
    }
    b_.CreateRetVoid();
  }

  // The exported call's body: the steps, run by one team of threads.
  static void EmitInTeam(const Entry& entry, GlueModule* glue) {
    llvm::IRBuilder<> b(glue->DefineHidden(entry.body, glue->BodyType()));
    llvm::Function* function = b.GetInsertBlock()->getParent();
    auto* type = llvm::FunctionType::get(b.getVoidTy(),
                                         {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
    b.CreateCall(glue->Hidden("MyccRunInTeam", type),
                 {glue->Hidden(StepsSymbol(entry), glue->BodyType()), function->getArg(0),
                  function->getArg(1), function->getArg(2)});
    b.CreateRetVoid();
  }

 private:
  void ExportProfile() {
    const auto launches = static_cast<int64_t>(spec_.program.launches.size());
    marks_ = glue_.Counters(launches + 1);
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
    glue_.ExportWith(ProfileSymbol(spec_), "MyccProfile", {marks_, glue_.Int(launches)}, type);
  }

  void Mark(size_t number) {
    if (marks_ == nullptr) return;
    llvm::Function* mark =
        glue_.Hidden("MyccMark", llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false));
    b_.CreateCall(mark, {b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), marks_, number)});
  }

  llvm::Value* At(llvm::Value* base, int64_t offset) {
    return offset == 0 ? base : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset);
  }

  llvm::Value* CallersTensor(int64_t number) {
    return b_.CreateLoad(b_.getPtrTy(),
                         b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0), number));
  }

  llvm::Value* Address(const KernelLaunch& launch, size_t number, size_t tensor) {
    const TensorPlace& place = launch.places[tensor];
    switch (place.kind) {
      case TensorPlace::kInput: return CallersTensor(place.at);
      case TensorPlace::kOutput:
        return CallersTensor(static_cast<int64_t>(spec_.program.inputs.size()) + place.at);
      case TensorPlace::kArena: return At(function_->getArg(1), place.at);
      case TensorPlace::kConstant: return At(weights_symbol_, weights_.offsets[number][tensor]);
    }
    return nullptr;
  }

  llvm::Value* Workspace() { return At(function_->getArg(1), spec_.program.arena_bytes); }

  void CallKernel(const KernelLaunch& launch, size_t number) {
    for (size_t i = 0; i < launch.tensors.size(); ++i)
      b_.CreateStore(Address(launch, number, i), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), pointers_, i));
    llvm::Function* body =
        glue_.Hidden(ProgramKernelSymbol(spec_, spec_.kernels[launch.kernel]) + "_body", glue_.BodyType());
    b_.CreateCall(body, {pointers_, Workspace(), function_->getArg(2)});
  }

  void CallLibrary(const KernelLaunch& launch, size_t number) {
    for (size_t i = 0; i < launch.tensors.size(); ++i) {
      const BufferNode& tensor = *launch.tensors[i];
      const auto field = [&](int64_t k) {
        return b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), rows_, static_cast<int64_t>(5 * i) + k);
      };
      b_.CreateStore(Address(launch, number, i), field(0));
      b_.CreateStore(b_.getInt64(static_cast<uint64_t>(tensor.dtype)), field(1));
      b_.CreateStore(b_.getInt64(DTypeBytes(tensor.dtype)), field(2));
      b_.CreateStore(b_.getInt64(tensor.shape.size()), field(3));
      b_.CreateStore(Integers(tensor.shape), field(4));
    }
    llvm::Function* kernel = glue_.Hidden(LibraryKernelSymbol(launch.call.function), glue_.BodyType());
    b_.CreateCall(kernel, {Integers(launch.call.attributes), rows_, Workspace()});
  }

  llvm::Constant* Integers(const std::vector<int64_t>& values) {
    std::vector<llvm::Constant*> constants;
    for (int64_t value : values) constants.push_back(glue_.Int(value));
    return glue_.Array(constants);
  }

  const ProgramSpec& spec_;
  const WeightLayout& weights_;
  GlueModule& glue_;
  llvm::IRBuilder<> b_;
  llvm::Function* const function_;
  llvm::Constant* const weights_symbol_;
  llvm::Value *pointers_ = nullptr, *rows_ = nullptr;
  llvm::Constant* marks_ = nullptr;  // null: no profile
};

}  // namespace

absl::StatusOr<Entry> ProgramEntry(const ProgramSpec& spec) {
  MYCC_RETURN_IF_ERROR(CheckSymbolName("the module's name", spec.module));
  Entry entry;
  entry.symbol = spec.module + "_run";
  entry.body = entry.symbol + "_body";
  entry.title = absl::StrCat("the model ", spec.program.name);
  for (const NamedTensor& input : spec.program.inputs) {
    entry.args.push_back(TensorArg(input.name, input.tensor, /*is_output=*/false));
    entry.args.back().is_text = input.is_text;
  }
  for (const NamedTensor& output : spec.program.outputs) {
    if (output.is_extent) continue;
    entry.args.push_back(TensorArg(output.name, output.tensor, /*is_output=*/true));
    entry.args.back().is_text = output.is_text;
    entry.args.back().bounded = output.bounded;
  }
  entry.shared_bytes = spec.program.arena_bytes + LaunchWorkspaceBytes(spec);
  for (const KernelSpec& kernel : spec.kernels) {
    entry.thread_bytes = std::max(entry.thread_bytes, kernel.lowered.workspace_thread_bytes);
    entry.parallel |= kernel.lowered.parallel;
  }
  return entry;
}

std::string ProfileSymbol(const ProgramSpec& spec) { return spec.module + "_profile"; }

std::string WeightsSymbol(const ProgramSpec& spec) { return spec.module + "_weights"; }

std::string ProgramKernelSymbol(const ProgramSpec& spec, const KernelSpec& kernel) {
  return absl::StrCat(spec.module, "_", kernel.workload.name);
}

int64_t LaunchWorkspaceBytes(const ProgramSpec& spec) {
  int64_t most = 0;
  for (const KernelLaunch& launch : spec.program.launches) {
    if (launch.kernel >= 0) {
      most = std::max(most, spec.kernels[launch.kernel].lowered.workspace_shared_bytes);
    } else {
      const auto outputs_at = launch.tensors.end() - launch.num_outputs;
      most = std::max(most, LibraryWorkspaceBytes(launch.call, {outputs_at, launch.tensors.end()}));
    }
  }
  return (most + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

absl::StatusOr<std::string> EmitProgramGlue(const ProgramSpec& spec, const Entry& entry,
                                            const WeightLayout& weights, const std::string& json) {
  GlueModule glue;
  BodyEmitter(spec, RunsInTeam(spec) ? StepsSymbol(entry) : entry.body, weights, &glue).Run();
  if (RunsInTeam(spec)) BodyEmitter::EmitInTeam(entry, &glue);
  MYCC_RETURN_IF_ERROR(DefineCpuModule({spec.module, spec.target, {}}, {entry}, json, &glue));
  return glue.EmitObject();
}

}  // namespace mycc
