#include "codegen/artifact/library.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/artifact/cuda_library.h"
#include "codegen/artifact/describe.h"
#include "codegen/artifact/entry.h"
#include "codegen/artifact/glue.h"
#include "codegen/artifact/link.h"
#include "codegen/cuda/emit.h"
#include "codegen/llvm/emit.h"
#include "codegen/runtime/artifact/embed.h"

namespace mycc {
namespace {

absl::StatusOr<std::string> CpuSharedObject(const LibrarySpec& spec, const std::vector<Entry>& entries) {
  std::vector<EmitUnit> units;
  for (const KernelSpec& kernel : spec.kernels) units.push_back({KernelSymbol(spec, kernel), kernel.lowered});
  MYCC_ASSIGN_OR_RETURN(const std::string kernels, EmitModule(units, spec.target, EmitKind::kObject));
  MYCC_ASSIGN_OR_RETURN(const std::string glue, EmitGlue(spec, entries, LibraryJson(spec)));
  return LinkSharedObject({kernels, glue, CpuArtifactObject()}, ExportedSymbols(spec, entries),
                          absl::StrCat(spec.module, ".so"));
}

absl::StatusOr<SharedObject> Build(const LibrarySpec& spec, const std::vector<Entry>& entries) {
  SharedObject object;
  if (spec.target.kind == TargetKind::kCuda) {
    std::vector<CudaProgram> programs;
    for (const KernelSpec& kernel : spec.kernels)
      programs.push_back(WithSymbol(kernel.program, KernelSymbol(spec, kernel)));
    return LinkCudaPrograms(spec, entries, programs);
  }
  MYCC_ASSIGN_OR_RETURN(object.bytes, CpuSharedObject(spec, entries));
  return object;
}

}  // namespace

absl::StatusOr<BuildReport> BuildSharedObject(const LibrarySpec& spec, const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  MYCC_ASSIGN_OR_RETURN(const SharedObject object, Build(spec, entries));
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(path, object.bytes, /*executable=*/true));
  return object.report;
}

absl::StatusOr<BuildReport> BuildLibrary(const LibrarySpec& spec, const std::string& dir) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  MYCC_ASSIGN_OR_RETURN(const SharedObject object, Build(spec, entries));
  const std::string stem = absl::StrCat(dir, "/", spec.module);
  MYCC_RETURN_IF_ERROR(WriteFilesAtomically({{absl::StrCat(dir, "/dlpack.h"), std::string(DlpackHeader())},
                                             {stem + ".h", LibraryHeader(spec, entries)},
                                             {stem + ".json", LibraryJson(spec)},
                                             {stem + ".so", object.bytes, /*executable=*/true}}));
  return object.report;
}

}  // namespace mycc
