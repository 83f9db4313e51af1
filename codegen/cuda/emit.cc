#include "codegen/cuda/emit.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/launch.h"
#include "codegen/ir/debug.h"
#include "codegen/ir/function.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"

namespace mycc {
namespace {

void AddWorkspace(const LoweredFunction& lowered, std::vector<LaunchBuffer>* buffers) {
  for (const WorkspaceBuffer& workspace : lowered.workspace)
    buffers->push_back({workspace.buffer, CudaOperand{CudaOperand::kWorkspace, workspace.offset}, false});
}

// A call's arguments are the parameters, with packed buffers instead of const ones.
std::vector<LaunchBuffer> BuffersOfCall(const LoweredFunction& lowered) {
  std::vector<LaunchBuffer> buffers;
  const auto& params = lowered.kernel.params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].kind == ParamKind::kConst) continue;
    buffers.push_back(
        {params[i].buffer, CudaOperand{static_cast<int>(i), 0}, params[i].kind == ParamKind::kInput});
  }
  for (const PackedBuffer& packed : lowered.packed)
    buffers.push_back({packed.buffer, CudaOperand{packed.param, packed.offset}, true});
  AddWorkspace(lowered, &buffers);
  return buffers;
}

// Packing's arguments are the const inputs, then their packed buffers.
std::vector<LaunchBuffer> BuffersOfPack(const LoweredFunction& lowered) {
  std::vector<LaunchBuffer> buffers;
  const std::map<int, int> positions = ConstPositions(lowered);
  for (const auto& [param, position] : positions)
    buffers.push_back({lowered.kernel.params[param].buffer, CudaOperand{position, 0}, true});
  const int consts = static_cast<int>(positions.size());
  for (const PackedBuffer& packed : lowered.packed) {
    const int argument = consts + positions.at(packed.param);
    buffers.push_back({packed.buffer, CudaOperand{argument, packed.offset}, false});
  }
  AddWorkspace(lowered, &buffers);
  return buffers;
}

// A launch keeps those of the buffers that it uses.
absl::StatusOr<CudaLaunch> LaunchOf(const Stmt& root, const std::vector<LaunchBuffer>& buffers) {
  MYCC_CHECK(root->kind == StmtKind::kLaunch) << StmtName(root) << " is no launch";
  CudaLaunch launch{As<Launch>(root).shape, {}, nullptr, {}, {}};
  launch.blocks = GridLoopsOf(As<Launch>(root).body, &launch.body);
  const BufferSet used = BuffersUnder(launch.body);
  for (const LaunchBuffer& buffer : buffers) {
    if (used.contains(buffer.buffer.get())) launch.buffers.push_back(buffer);
  }
  MYCC_ASSIGN_OR_RETURN(launch.registers,
                        DistributeRegisters(launch.body, launch.threads * launch.cluster_reduce));
  return launch;
}

// Appends the kernels of one body to `source`. The body is one Launch or a sequence of them, as Lower makes
// it; `buffers` are all buffers from outside of it.
absl::StatusOr<std::vector<CudaStep>> EmitBody(const Stmt& body, const std::vector<LaunchBuffer>& buffers,
                                               const std::string& symbol, const Target& target,
                                               Prelude* prelude, std::string* source) {
  const std::vector<Stmt> roots =
      body->kind == StmtKind::kSeq ? As<Seq>(body).stmts : std::vector<Stmt>{body};
  std::vector<CudaStep> steps;
  for (const Stmt& root : roots) {
    MYCC_ASSIGN_OR_RETURN(const CudaLaunch launch, LaunchOf(root, buffers));
    CudaStep step;
    step.kernel = absl::StrCat(symbol, "_", steps.size());
    step.grid = {launch.grid, 1, 1};
    step.cluster = launch.cluster;
    step.threads = launch.threads;
    for (const LaunchBuffer& buffer : launch.buffers) step.pointers.push_back(buffer.operand);
    KernelEmitter emitter(launch, target, prelude);
    MYCC_ASSIGN_OR_RETURN(const std::string kernel, emitter.Kernel(step.kernel));
    step.maps = emitter.maps();
    step.shared_bytes = launch.shared_bytes;
    step.waits = launch.after_launch;
    absl::StrAppend(source, "\n", kernel);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

absl::StatusOr<CudaProgram> EmitCuda(const LoweredFunction& lowered, const Target& target,
                                     const std::string& symbol) {
  MYCC_CHECK(target.kind == TargetKind::kCuda) << "EmitCuda for " << PrintTarget(target);
  const TimedStep timed("emit_cuda", [&] { return symbol; });
  CudaProgram program;
  program.symbol = symbol;
  Prelude prelude;
  std::string kernels;
  MYCC_ASSIGN_OR_RETURN(program.call, EmitBody(lowered.kernel.body, BuffersOfCall(lowered), symbol, target,
                                               &prelude, &kernels));
  MYCC_ASSIGN_OR_RETURN(program.pack, EmitBody(lowered.pack.body, BuffersOfPack(lowered),
                                               absl::StrCat(symbol, "_pack"), target, &prelude, &kernels));
  program.source = prelude.Text() + kernels;
  program.workspace_bytes = lowered.workspace_shared_bytes;
  return program;
}

CudaProgram WithSymbol(CudaProgram program, const std::string& symbol) {
  for (std::vector<CudaStep>* const steps : {&program.call, &program.pack}) {
    for (CudaStep& step : *steps) {
      // A kernel's name occurs in the source only in its definition.
      const std::string name = symbol + step.kernel.substr(program.symbol.size());
      const size_t at = program.source.find(absl::StrCat(" ", step.kernel, "("));
      MYCC_CHECK(at != std::string::npos) << step.kernel << " is not defined in\n" << program.source;
      program.source.replace(at + 1, step.kernel.size(), name);
      step.kernel = name;
    }
  }
  program.symbol = symbol;
  return program;
}

}  // namespace mycc
