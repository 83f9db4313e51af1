// Calls a function on a GPU: checks the arguments, then enqueues the function's steps.
#include "codegen/runtime/artifact/cuda_artifact.h"

// The addresses of one call's arguments and workspace.
struct Call {
  const struct MyccCudaScope* scope;
  CuStream stream;
  void* const* data;
  CuAddress workspace;
};

static CuAddress AddressOf(const struct Call* call, struct MyccCudaOperand operand) {
  enum { kWeights = -2 };
  const CuAddress base = operand.argument == kWeights ? call->scope->weights
                         : operand.argument < 0       ? call->workspace
                                                      : (CuAddress)call->data[operand.argument];
  return base + (CuAddress)operand.offset;
}

static int32_t Launch(const struct Call* call, const struct MyccCudaStep* step) {
  // C has no empty arrays, so each has at least one element.
  struct CuTensorMapBits maps[step->num_maps + 1];
  CuAddress pointers[step->num_pointers + 1];
  void* params[step->num_maps + step->num_pointers + 1];
  for (int64_t i = 0; i < step->num_maps; ++i) {
    const struct MyccCudaMap* map = &step->maps[i];
    if (MyccCudaEncodeMap(call->scope, map, AddressOf(call, map->operand), &maps[i]) != 0) return 1;
    params[i] = &maps[i];
  }
  for (int64_t i = 0; i < step->num_pointers; ++i) {
    pointers[i] = AddressOf(call, step->pointers[i]);
    params[step->num_maps + i] = &pointers[i];
  }
  struct CuLaunchAttribute attributes[2];
  uint32_t num_attributes = 0;
  if (step->cluster > 1) {
    attributes[num_attributes++] = (struct CuLaunchAttribute){
        .id = kCudaLaunchCluster, .value.cluster = {(uint32_t)step->cluster, 1, 1}};
  }
  if (step->waits)
    attributes[num_attributes++] = (struct CuLaunchAttribute){.id = kCudaLaunchOverlap, .value.overlap = 1};
  const struct CuLaunchConfig config = {
      .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
      .block = {(uint32_t)step->threads, 1, 1},
      .shared_bytes = (uint32_t)step->shared_bytes,
      .stream = call->stream,
      .attributes = attributes,
      .num_attributes = num_attributes,
  };
  // A kernel's handle means its function in the current context.
  MYCC_TRY(call->scope, LaunchKernelEx, &config, (CuFunction)mycc_cuda_module.handles.kernels[step->kernel],
           params, NULL);
  return 0;
}

// Loads the code in the first call in a context; fails if that call is captured.
static int32_t LoadForCall(struct MyccCudaScope* scope, CuStream stream) {
  if (MyccCudaIsLoaded(scope)) return 0;
  struct MyccCudaCapture capture;
  if (MyccCudaCaptureOf(scope, stream, &capture) != 0) return 1;
  if (capture.graph == NULL) return MyccCudaLoad(scope);
  return MyccFail(
      "%s: the stream is being captured and the code is not loaded; expected %s_prepare(%d) before",
      mycc_cuda_module.name, mycc_cuda_module.name, scope->device_id);
}

static int32_t Run(struct MyccCudaScope* scope, const struct MyccCudaEntry* entry, void* const* data,
                   CuStream stream) {
  struct Call call = {scope, stream, data, 0};
  if (LoadForCall(scope, stream) != 0 || MyccCudaCheckPacked(scope, stream, &entry->signature, data) != 0)
    return 1;
  if (entry->uses_workspace && MyccCudaWorkspace(scope, stream, &call.workspace) != 0) return 1;
  for (int64_t i = 0; i < entry->num_steps; ++i) {
    if (Launch(&call, &entry->steps[i]) != 0) return 1;
  }
  // Last, because steps may fill whole buffers.
  return MyccCudaWriteHeaders(scope, stream, &entry->signature, data);
}

int32_t MyccCudaCall(const struct MyccCudaEntry* entry, DLTensor** args, int32_t num_args, void* stream) {
  const struct MyccSignature* signature = &entry->signature;
  void* data[signature->num_args + 1];
  if (MyccCheckArgs(signature, kMyccOnCuda, args, num_args, data) != 0) return 1;
  struct MyccCudaScope scope;
  if (MyccCudaEnter(args[0]->device.device_id, &scope) != 0) return 1;
  const int32_t failed = Run(&scope, entry, data, stream);
  MyccCudaLeave(&scope);
  return failed;
}

int32_t MyccCudaPrepare(int32_t device_id) {
  struct MyccCudaScope scope;
  if (MyccCudaEnter(device_id, &scope) != 0) return 1;
  const int32_t failed = MyccCudaLoad(&scope) != 0 || MyccCudaSpareWorkspace(&scope) != 0;
  MyccCudaLeave(&scope);
  return failed;
}
