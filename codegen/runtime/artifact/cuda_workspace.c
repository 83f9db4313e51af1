// Allocates workspaces on a GPU: one for each calling stream, because work on a stream runs in order; and one
// for each capture, because its graph may run concurrently with anything else.
#include <semaphore.h>
#include <stdlib.h>

#include "codegen/runtime/artifact/cuda_artifact.h"

struct Workspace {
  struct Workspace* next;
  unsigned long long context_id;
  CuAddress memory;
  // The owner; a spare workspace has none.
  int is_owned;
  CuStream stream;
  const void* thread;  // for the handle that means another stream in each thread; else NULL
  uint64_t capture;    // 0: calls outside of a capture
  sem_t* graph_gone;   // posted when the capture's last graph is destroyed, see LendToGraph()
};
static struct Workspace* workspaces;  // under the lock; entries stay

// The driver calls a function after the last graph that may use the workspace is destroyed. This artifact may
// be unloaded by then, so the function is libc's sem_post. The driver ignores its result.
static int32_t LendToGraph(const struct MyccCudaScope* scope, struct Workspace* workspace, CuGraph graph) {
  sem_t* gone = malloc(sizeof *gone);
  if (gone == NULL) return MyccFail("%s: no memory", mycc_cuda_module.name);
  sem_init(gone, 0, 0);
  CuUserObject object;
  const CuResult result = scope->driver->UserObjectCreate(
      &object, gone, (void (*)(void*))(void (*)(void))sem_post, 1, kCudaUserObjectNoSync);
  if (result != kCudaSuccess) {
    free(gone);
    return MyccCudaFail(scope->driver, "cuUserObjectCreate", result);
  }
  MYCC_TRY(scope, GraphRetainUserObject, graph, object, 1, kCudaGraphUserObjectMove);
  workspace->graph_gone = gone;
  return 0;
}

// Makes workspaces spare whose graphs are destroyed. Under the lock.
static void TakeBack(void) {
  for (struct Workspace* workspace = workspaces; workspace != NULL; workspace = workspace->next) {
    if (workspace->graph_gone == NULL || sem_trywait(workspace->graph_gone) != 0) continue;
    free(workspace->graph_gone);
    workspace->graph_gone = NULL;
    workspace->is_owned = 0;
  }
}

// Allocates a spare workspace, outside of any capture. NULL after setting the error text. Under the lock.
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
  workspace->context_id = scope->context_id;
  workspace->next = workspaces;
  workspaces = workspace;
  return workspace;
}

static struct Workspace* FindSpare(const struct MyccCudaScope* scope) {
  TakeBack();
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

// Frees the workspaces of the calling thread's context, which still exists. Workspaces of other contexts are
// freed with those.
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
