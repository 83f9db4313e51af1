#include "codegen/artifact/glue.h"

#include "base/status.h"
#include "codegen/artifact/cpu_needs.h"
#include "codegen/artifact/glue_module.h"
#include "codegen/runtime/artifact/artifact.h"

namespace mycc {
namespace {

static_assert(sizeof(MyccEntry) == 9 * 8 && sizeof(MyccCpuNeed) == 6 * 8 && sizeof(MyccModule) == 6 * 8);

// Packing happens once, so its workspace is not kept.
llvm::Constant* EntryRow(const Entry& entry, GlueModule* glue) {
  std::vector<llvm::Constant*> fields = glue->SignatureFields(entry, /*alignment=*/0);
  fields.insert(fields.end(), {glue->Hidden(entry.body, glue->BodyType()), glue->Int(entry.shared_bytes),
                               glue->Int(entry.thread_bytes), glue->Int(entry.parallel),
                               entry.is_packer ? glue->Null() : glue->Pointers(kMyccPoolSlots)});
  return glue->Row(fields);
}

}  // namespace

absl::Status DefineCpuModule(const LibrarySpec& spec, const std::vector<Entry>& entries,
                             const std::string& json, GlueModule* out) {
  GlueModule& glue = *out;
  std::vector<llvm::Constant*> rows, needs;
  for (const Entry& entry : entries) rows.push_back(EntryRow(entry, &glue));
  MYCC_ASSIGN_OR_RETURN(const std::vector<MyccCpuNeed> cpu_needs, CpuNeeds(spec.target));
  for (const MyccCpuNeed& need : cpu_needs) {
    needs.push_back(glue.Row({glue.Text(need.name), glue.Int(need.leaf), glue.Int(need.subleaf),
                              glue.Int(need.reg), glue.Int(need.bit), glue.Int(need.xcr0)}));
  }
  llvm::Constant* table = glue.Array(rows);
  glue.Define("mycc_module",
              glue.Row({glue.Text(spec.module), glue.Text(PrintTarget(spec.target)), glue.Int(needs.size()),
                        glue.Array(needs), glue.Int(rows.size()), table}));
  // A CPU has no streams.
  if (!rows.empty()) glue.ExportCalls(entries, table, rows[0]->getType(), "MyccCall", /*with_stream=*/false);
  glue.ExportModule(spec, "MyccPrepare", json);
  return absl::OkStatus();
}

absl::StatusOr<std::string> EmitGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                     const std::string& json) {
  GlueModule glue;
  MYCC_RETURN_IF_ERROR(DefineCpuModule(spec, entries, json, &glue));
  return glue.EmitObject();
}

}  // namespace mycc
