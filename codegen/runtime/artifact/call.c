// Calls a function on a CPU: checks the arguments, takes a workspace, and runs the kernel.
#include <string.h>

#include "codegen/runtime/artifact/artifact.h"
#include "codegen/runtime/artifact/library_kernels.h"

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

// Whether an extent is known after the call alone.
static int IsBounded(const struct MyccArg* arg, int64_t axis) {
  return axis < 64 && ((uint64_t)arg->bounded >> axis & 1) != 0;
}

static int64_t CountExtents(const struct MyccSignature* signature) {
  int64_t count = 0;
  for (int64_t i = 0; i < signature->num_args; ++i) {
    for (int64_t axis = 0; axis < signature->args[i].ndim; ++axis)
      count += IsBounded(&signature->args[i], axis);
  }
  return count;
}

static void WriteExtents(const struct MyccSignature* signature, DLTensor** args, const int64_t* extents) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    for (int64_t axis = 0; axis < signature->args[i].ndim; ++axis) {
      if (IsBounded(&signature->args[i], axis)) args[i]->shape[axis] = *extents++;
    }
  }
}

int32_t MyccCall(const struct MyccEntry* entry, DLTensor** args, int32_t num_args) {
  if (MyccCheckCpu() != 0) return 1;
  const struct MyccSignature* signature = &entry->signature;
  const int64_t num_extents = CountExtents(signature);
  int64_t extents[num_extents + 1];
  void* data[signature->num_args + num_extents + 1];
  for (int64_t i = 0; i < num_extents; ++i) data[signature->num_args + i] = &extents[i];
  if (MyccCheckArgs(signature, kMyccOnCpu, args, num_args, data) != 0) return 1;
  if (CheckHeaders(signature, data) != 0) return 1;
  struct MyccWorkspace workspace;
  if (MyccTakeWorkspace(entry, &workspace) != 0) return 1;
  WriteHeaders(signature, data);
  MyccForgetTexts();
  entry->body(data, workspace.shared, workspace.threads);
  MyccPutWorkspace(entry, &workspace);
  const char* problem = MyccTakeProblem();
  if (problem != NULL) return MyccFail("%s: %s", signature->symbol, problem);
  WriteExtents(signature, args, extents);
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
