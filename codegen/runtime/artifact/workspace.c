// Manages workspaces on a CPU: a few slots, each emptied and filled by one atomic exchange. There is no lock
// and no list, so a signal, a fork or unloading leaves nothing half done. A call that finds every slot empty
// allocates; a call that finds every slot full frees.
#include <dlfcn.h>
#include <stdlib.h>

#include "codegen/runtime/artifact/artifact.h"

int omp_get_max_threads(void);

// The first cache line of a block has its size; calls use the rest.
static int64_t* BlockBytes(void* block) { return block; }

static int64_t RoundUp(int64_t bytes) {
  return (bytes + kMyccPackedAlignment - 1) / kMyccPackedAlignment * kMyccPackedAlignment;
}

static void* TakeBlock(struct MyccPool* pool) {
  for (int i = 0; i < kMyccPoolSlots; ++i) {
    if (__atomic_load_n(&pool->slots[i], __ATOMIC_RELAXED) == NULL) continue;
    void* block = __atomic_exchange_n(&pool->slots[i], NULL, __ATOMIC_ACQUIRE);
    if (block != NULL) return block;
  }
  return NULL;
}

static void PutBlock(struct MyccPool* pool, void* block) {
  for (int i = 0; i < kMyccPoolSlots; ++i) {
    void* empty = NULL;
    if (__atomic_compare_exchange_n(&pool->slots[i], &empty, block, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      return;
  }
  free(block);
}

int32_t MyccTakeWorkspace(const struct MyccEntry* entry, struct MyccWorkspace* workspace) {
  static uint8_t nothing[kMyccPackedAlignment] __attribute__((aligned(kMyccPackedAlignment)));
  workspace->block = NULL;
  workspace->shared = workspace->threads = nothing;
  if (entry->shared_bytes == 0 && entry->thread_bytes == 0) return 0;

  // A team has at most this number of threads. The host program decides it and may raise it, so a block that
  // has become too small is replaced.
  const int64_t team = entry->parallel ? omp_get_max_threads() : 1;
  const int64_t shared = RoundUp(entry->shared_bytes);
  const int64_t bytes = kMyccPackedAlignment + shared + RoundUp(entry->thread_bytes * team);
  void* block = entry->pool == NULL ? NULL : TakeBlock(entry->pool);
  if (block != NULL && *BlockBytes(block) < bytes) {
    free(block);
    block = NULL;
  }
  if (block == NULL) {
    block = aligned_alloc(kMyccPackedAlignment, bytes);
    if (block == NULL) {
      return MyccFail("%s: no memory for a workspace of %lld bytes (%lld threads)", entry->signature.symbol,
                      (long long)bytes, (long long)team);
    }
    *BlockBytes(block) = bytes;
  }
  workspace->block = block;
  workspace->shared = (uint8_t*)block + kMyccPackedAlignment;
  workspace->threads = workspace->shared + shared;
  return 0;
}

void MyccPutWorkspace(const struct MyccEntry* entry, struct MyccWorkspace* workspace) {
  if (workspace->block == NULL) return;
  if (entry->pool == NULL) {
    free(workspace->block);
  } else {
    PutBlock(entry->pool, workspace->block);
  }
}

// libgomp's threads outlive the call that started them. If this artifact is the last user of libgomp,
// unloading both would remove the code that those threads run, so libgomp stays loaded.
__attribute__((constructor)) static void KeepOpenMp(void) {
  dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

__attribute__((destructor)) static void FreePools(void) {
  for (int64_t i = 0; i < mycc_module.num_entries; ++i) {
    struct MyccPool* pool = mycc_module.entries[i].pool;
    for (void* block; pool != NULL && (block = TakeBlock(pool)) != NULL;) free(block);
  }
}
