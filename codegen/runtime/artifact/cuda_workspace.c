// Workspaces: one for each stream that has called, since what is enqueued on a stream runs in order, and one
// for each capture, since its graph may be launched beside anything.
#define _GNU_SOURCE 1  // dladdr()

#include <dlfcn.h>
#include <stdlib.h>

#include "codegen/runtime/artifact/cuda_artifact.h"

struct Workspace {
  struct Workspace* next;
  CuContext context;
  unsigned long long context_id;
  CuAddress memory;
  // Its owner; a spare one has none.
  int is_owned;
  CuStream stream;
  const void* thread;  // where the stream's handle means another stream in each thread
  uint64_t capture;    // 0: calls that run at once
};
static struct Workspace* workspaces;  // under the lock; entries stay

// Called by the driver when the last graph that may use the workspace is gone.
static void GiveBack(void* object) {
  struct Workspace* workspace = object;
  MyccLock();
  workspace->is_owned = 0;
  MyccUnlock();
}

// The driver may call into this artifact until the graph is gone, so it stays loaded from now on.
static void StayLoaded(void) {
  Dl_info info;
  if (dladdr((const void*)&GiveBack, &info) != 0)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static int32_t LendToGraph(const struct MyccCudaScope* scope, struct Workspace* workspace, CuGraph graph) {
  StayLoaded();
  CuUserObject object;
  MYCC_TRY(scope, UserObjectCreate, &object, workspace, GiveBack, 1, kCudaUserObjectNoSync);
  MYCC_TRY(scope, GraphRetainUserObject, graph, object, 1, kCudaGraphUserObjectMove);
  return 0;
}

// Allocates a spare one, outside of any capture. NULL after setting the error text. Under the lock.
static struct Workspace* Allocate(const struct MyccCudaScope* scope) {
  struct Workspace* workspace = calloc(1, sizeof *workspace);
  if (workspace == NULL) {
    MyccFail("%s: no memory", mycc_cuda_module.name);
    return NULL;
  }
  const int mode = MyccCudaRelax(scope->driver);
  const CuResult result =
      scope->driver->MemAlloc(&workspace->memory, (size_t)mycc_cuda_module.workspace_bytes);
  MyccCudaRestore(scope->driver, mode);
  if (result != kCudaSuccess) {
    free(workspace);
    MyccCudaFail(scope->driver, "cuMemAlloc of a workspace", result);
    return NULL;
  }
  workspace->context = scope->context;
  workspace->context_id = scope->context_id;
  workspace->next = workspaces;
  workspaces = workspace;
  return workspace;
}

static struct Workspace* FindSpare(const struct MyccCudaScope* scope) {
  for (struct Workspace* workspace = workspaces; workspace != NULL; workspace = workspace->next) {
    if (!workspace->is_owned && workspace->context_id == scope->context_id) return workspace;
  }
  return NULL;
}

static struct Workspace* FindOwned(const struct MyccCudaScope* scope, CuStream stream, const void* thread,
                                   uint64_t capture) {
  for (struct Workspace* workspace = workspaces; workspace != NULL; workspace = workspace->next) {
    if (workspace->is_owned && workspace->context_id == scope->context_id && workspace->stream == stream &&
        workspace->thread == thread && workspace->capture == capture)
      return workspace;
  }
  return NULL;
}

// Under the lock.
static struct Workspace* Take(const struct MyccCudaScope* scope, CuStream stream,
                              const struct MyccCudaCapture* capture) {
  const void* thread = stream == kCudaStreamPerThread ? MyccLastError() : NULL;
  struct Workspace* workspace = FindOwned(scope, stream, thread, capture->id);
  if (workspace != NULL) return workspace;
  workspace = FindSpare(scope);
  if (workspace == NULL) workspace = Allocate(scope);
  if (workspace == NULL) return NULL;
  if (capture->graph != NULL && LendToGraph(scope, workspace, capture->graph) != 0) return NULL;
  workspace->is_owned = 1;
  workspace->stream = stream;
  workspace->thread = thread;
  workspace->capture = capture->id;
  return workspace;
}

int32_t MyccCudaWorkspace(const struct MyccCudaScope* scope, CuStream stream, CuAddress* address) {
  struct MyccCudaCapture capture;
  if (MyccCudaCaptureOf(scope, stream, &capture) != 0) return 1;
  MyccLock();
  const struct Workspace* workspace = Take(scope, stream, &capture);
  MyccUnlock();
  if (workspace == NULL) return 1;
  *address = workspace->memory;
  return 0;
}

int32_t MyccCudaSpareWorkspace(const struct MyccCudaScope* scope) {
  if (mycc_cuda_module.workspace_bytes == 0) return 0;
  MyccLock();
  const struct Workspace* workspace = FindSpare(scope);
  if (workspace == NULL) workspace = Allocate(scope);
  MyccUnlock();
  return workspace == NULL;
}

// Frees the workspaces of the calling thread's context: that context is alive. Those of others go with
// theirs.
__attribute__((destructor)) static void FreeWorkspaces(void) {
  const struct MyccCudaDriver* driver = MyccCudaOpened();
  CuContext current = NULL;
  unsigned long long current_id = 0;
  if (driver != NULL && driver->CtxGetCurrent(&current) == kCudaSuccess && current != NULL)
    driver->CtxGetId(current, &current_id);
  while (workspaces != NULL) {
    struct Workspace* workspace = workspaces;
    workspaces = workspace->next;
    if (current != NULL && workspace->context_id == current_id) driver->MemFree(workspace->memory);
    free(workspace);
  }
}
