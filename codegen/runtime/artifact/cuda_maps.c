// Caches TMA descriptors. A descriptor depends only on its table and the address, so it is kept for the next
// call with the same arguments. A call takes a slot by one atomic exchange, and makes a new descriptor when
// the slot is taken: no lock, no allocation, and nothing that a fork could leave half done.
#include "codegen/runtime/artifact/cuda_artifact.h"

enum { kSlotBits = 10 };  // a model has hundreds of descriptors

struct Slot {
  struct CuTensorMapBits bits;
  const struct MyccCudaMap* map;  // NULL in an empty slot
  CuAddress address;
  int is_taken;  // accessed atomically
};
static struct Slot slots[1 << kSlotBits];

static struct Slot* SlotOf(const struct MyccCudaMap* map, CuAddress address) {
  const uint64_t key = (uint64_t)(uintptr_t)map + (uint64_t)address;
  return &slots[key * 0x9e3779b97f4a7c15u >> (64 - kSlotBits)];
}

static int32_t Encode(const struct MyccCudaScope* scope, const struct MyccCudaMap* map, CuAddress address,
                      struct CuTensorMapBits* bits) {
  enum { kNoInterleave = 0, kFillZeros = 0 };
  MYCC_TRY(scope, TensorMapEncodeTiled, bits, (int)map->type, (uint32_t)map->rank, (void*)address, map->dims,
           map->strides, map->box, map->element_strides, kNoInterleave, (int)map->swizzle, kCudaMapPromote128,
           kFillZeros);
  return 0;
}

int32_t MyccCudaEncodeMap(const struct MyccCudaScope* scope, const struct MyccCudaMap* map, CuAddress address,
                          struct CuTensorMapBits* bits) {
  struct Slot* slot = SlotOf(map, address);
  if (__atomic_exchange_n(&slot->is_taken, 1, __ATOMIC_ACQUIRE)) return Encode(scope, map, address, bits);
  int32_t failed = 0;
  if (slot->map != map || slot->address != address) {
    failed = Encode(scope, map, address, &slot->bits);
    slot->map = failed ? NULL : map;
    slot->address = address;
  }
  *bits = slot->bits;
  __atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
  return failed;
}
