// Calls a function on a CPU: checks the arguments, takes a workspace, and runs the kernel.
#include <string.h>

#include "codegen/runtime/artifact/artifact.h"

static int32_t CheckHeaders(const struct MyccSignature* signature, void* const* data) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    const struct MyccArg* arg = &signature->args[i];
    if (!arg->is_output && arg->header != NULL && memcmp(data[i], arg->header, kMyccHeaderBytes) != 0)
      return MyccRefuseHeader(signature, i);
  }
  return 0;
}

// Outputs that are packed buffers get the header that the reading function checks.
static void WriteHeaders(const struct MyccSignature* signature, void* const* data) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    const struct MyccArg* arg = &signature->args[i];
    if (arg->is_output && arg->header != NULL) memcpy(data[i], arg->header, kMyccHeaderBytes);
  }
}

int32_t MyccCall(const struct MyccEntry* entry, DLTensor** args, int32_t num_args) {
  if (MyccCheckCpu() != 0) return 1;
  const struct MyccSignature* signature = &entry->signature;
  void* data[signature->num_args > 0 ? signature->num_args : 1];
  if (MyccCheckArgs(signature, kMyccOnCpu, args, num_args, data) != 0) return 1;
  if (CheckHeaders(signature, data) != 0) return 1;
  struct MyccWorkspace workspace;
  if (MyccTakeWorkspace(entry, &workspace) != 0) return 1;
  WriteHeaders(signature, data);
  entry->body(data, workspace.shared, workspace.threads);
  MyccPutWorkspace(entry, &workspace);
  return 0;
}

int32_t MyccPrepare(int32_t device_id) {
  if (device_id != 0) {
    return MyccFail("%s: device %d, expected 0: it is compiled for the CPU", mycc_module.name,
                    (int)device_id);
  }
  if (MyccCheckCpu() != 0) return 1;
  for (int64_t i = 0; i < mycc_module.num_entries; ++i) {
    const struct MyccEntry* entry = &mycc_module.entries[i];
    if (entry->pool == NULL) continue;
    struct MyccWorkspace workspace;
    if (MyccTakeWorkspace(entry, &workspace) != 0) return 1;
    MyccPutWorkspace(entry, &workspace);
  }
  return 0;
}
