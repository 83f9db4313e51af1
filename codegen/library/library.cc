#include "codegen/library/library.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/library/describe.h"
#include "codegen/library/entry.h"
#include "codegen/library/glue.h"
#include "codegen/library/link.h"
#include "codegen/llvm/emit.h"
#include "codegen/runtime/artifact/embed.h"

namespace mycc {
namespace {

absl::StatusOr<std::string> SharedObject(const LibrarySpec& spec, const std::vector<Entry>& entries) {
  if (spec.target.kind != TargetKind::kCpu) {
    return absl::UnimplementedError(absl::StrCat("target `", PrintTarget(spec.target),
                                                 "`: libraries are built for CPUs; expected `v1 cpu ...`"));
  }
  std::vector<EmitUnit> units;
  for (const KernelSpec& kernel : spec.kernels) units.push_back({KernelSymbol(spec, kernel), kernel.lowered});
  MYCC_ASSIGN_OR_RETURN(const std::string kernels, EmitModule(units, spec.target, EmitKind::kObject));
  MYCC_ASSIGN_OR_RETURN(const std::string glue, EmitGlue(spec, entries, LibraryJson(spec)));
  return LinkSharedObject({kernels, glue}, ExportedSymbols(spec, entries), absl::StrCat(spec.module, ".so"));
}

}  // namespace

std::string ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kHit: return "hit";
    case Reason::kStale: return "stale";
    case Reason::kNear: return "near";
    case Reason::kMiss: return "miss";
    case Reason::kTrace: return "trace";
  }
  return "unknown";
}

absl::Status BuildSharedObject(const LibrarySpec& spec, const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  MYCC_ASSIGN_OR_RETURN(const std::string bytes, SharedObject(spec, entries));
  return WriteFileAtomically(path, bytes, /*executable=*/true);
}

absl::Status BuildLibrary(const LibrarySpec& spec, const std::string& dir) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  MYCC_ASSIGN_OR_RETURN(const std::string bytes, SharedObject(spec, entries));
  const std::string stem = absl::StrCat(dir, "/", spec.module);
  return WriteFilesAtomically({{absl::StrCat(dir, "/dlpack.h"), std::string(DlpackHeader())},
                               {stem + ".h", LibraryHeader(spec, entries)},
                               {stem + ".json", LibraryJson(spec)},
                               {stem + ".so", bytes, /*executable=*/true}});
}

}  // namespace mycc
