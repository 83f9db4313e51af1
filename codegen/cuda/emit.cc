#include "codegen/cuda/emit.h"

#include "base/check.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/debug.h"
#include "codegen/ir/function.h"
#include "codegen/ir/stmt_exprs.h"

namespace mycc {
namespace {

// All buffers from outside of a body.
std::vector<LaunchBuffer> OuterBuffers(const LoweredFunction& lowered,
                                       const std::vector<ArgumentBuffer>& arguments) {
  std::vector<LaunchBuffer> buffers;
  buffers.reserve(arguments.size() + lowered.workspace.size());
  for (const ArgumentBuffer& argument : arguments)
    buffers.push_back({argument.buffer, {argument.argument, argument.offset}, argument.read_only});
  for (const WorkspaceBuffer& workspace : lowered.workspace)
    buffers.push_back({workspace.buffer, {CudaOperand::kWorkspace, workspace.offset}, false});
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
  std::vector<CudaStep> steps;
  for (const Stmt& root : StmtsOf(body)) {
    MYCC_ASSIGN_OR_RETURN(const CudaLaunch launch, LaunchOf(root, buffers));
    const std::string name = absl::StrCat(symbol, "_", steps.size());
    KernelEmitter emitter(launch, target, prelude);
    MYCC_ASSIGN_OR_RETURN(const std::string kernel, emitter.Kernel(name));
    absl::StrAppend(source, "\n", kernel);
    steps.push_back({.kernel = name,
                     .grid = {launch.grid, 1, 1},
                     .cluster = launch.cluster,
                     .threads = launch.threads,
                     .shared_bytes = launch.shared_bytes,
                     .waits = launch.after_launch,
                     .maps = emitter.maps()});
    for (const LaunchBuffer& buffer : launch.buffers) steps.back().pointers.push_back(buffer.operand);
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
  const auto emit = [&](const Stmt& body, const std::vector<ArgumentBuffer>& arguments, const char* suffix) {
    return EmitBody(body, OuterBuffers(lowered, arguments), symbol + suffix, target, &prelude, &kernels);
  };
  MYCC_ASSIGN_OR_RETURN(program.call, emit(lowered.kernel.body, ArgumentsOfKernel(lowered), ""));
  MYCC_ASSIGN_OR_RETURN(program.pack, emit(lowered.pack.body, ArgumentsOfPack(lowered), "_pack"));
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
