#include "codegen/artifact/portable_library.h"

#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "codegen/artifact/cuda_library.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"

namespace mycc {

absl::StatusOr<PortableBuild> BuildPortable(const LibrarySpec& spec, const std::string& code_digest) {
  const KernelSpec& kernel = spec.kernels[0];
  MYCC_ASSIGN_OR_RETURN(
      CudaCode code, CompilePrograms({WithSymbol(kernel.program, KernelSymbol(spec, kernel))}, spec.target));
  PortableBuild build;
  build.report = std::move(code.report);
  build.portable.target = PrintTarget(spec.target);
  build.portable.code_digest = code_digest;
  MYCC_ASSIGN_OR_RETURN(build.portable.compiler, CudaToolchain());
  build.portable.program = std::move(code.units[0].program);
  build.portable.image = std::move(code.units[0].image);
  const std::vector<int64_t>& packed = kernel.lowered.packed_bytes;
  build.portable.packed_bytes = {packed.begin(), packed.begin() + std::ssize(kernel.workload.inputs)};
  return build;
}

BuildReport ReportOf(const Portable& portable) { return CodeOf({{portable.program, portable.image}}).report; }

absl::StatusOr<BuildReport> LinkPortable(const Portable& portable, const std::string& module,
                                         const Workload& workload, const Target& target,
                                         const std::string& path) {
  LibrarySpec spec{.module = module, .target = target, .kernels = {}};
  KernelSpec& kernel = spec.kernels.emplace_back();
  kernel.workload = workload;
  kernel.program = portable.program;
  kernel.lowered.packed_bytes = portable.packed_bytes;
  kernel.lowered.packed_bytes.resize(workload.inputs.size() + workload.outputs.size(), 0);
  // A packed buffer's header names the code that fills it, and no code of IR is here.
  kernel.lowered.pack.name = portable.code_digest;
  kernel.lowered.pack.body = MakeSeq({});
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  const CudaCode code = CodeOf({{portable.program, portable.image}});
  MYCC_ASSIGN_OR_RETURN(const SharedObject object, LinkCudaCode(spec, entries, code));
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(path, object.bytes, /*executable=*/true));
  return object.report;
}

}  // namespace mycc
