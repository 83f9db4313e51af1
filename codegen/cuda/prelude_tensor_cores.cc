// The prelude's device functions for tensor cores and asynchronous copies, as CUDA C++ source around PTX.
#include "codegen/cuda/prelude_fragments.h"

namespace mycc {

// PTX of sm_80: cp.async; and of sm_90: mbarriers, bulk tensor copies, wgmma. [PTX ISA 8.x]
namespace {

constexpr PreludeFragment kFragments[] = {
    {"shared_address", "", R"(
__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
)"},
    {"cp_async", "", R"(
// Copies kBytes to shared memory asynchronously, from element `at` of a tensor; zeros where there is nothing to copy:
// an address outside of the tensor is computed as a number, and never followed.
template <int kBytes, typename T>
__device__ __forceinline__ void cp_async(unsigned to, const T* tensor, long long at, bool inside) {
  const unsigned long long from = reinterpret_cast<unsigned long long>(tensor) + at * sizeof(T);
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(inside ? kBytes : 0)
                 : "memory");
  }
}
)"},
    {"load_ahead", "Vec", R"(
// kCount elements from element `at` of a tensor, or zeros. The compiler neither moves the load down to where its value
// is used, as it would with an ordinary one, nor branches around it.
template <int kCount, typename T>
__device__ __forceinline__ Vec<T, kCount> load_ahead(const T* tensor, long long at, bool inside) {
  Vec<T, kCount> value = {};
  if constexpr (sizeof(value) == 16) {
    const unsigned long long from = reinterpret_cast<unsigned long long>(tensor) + at * sizeof(T);
    uint4& words = reinterpret_cast<uint4&>(value);
    asm volatile("{\n.reg .pred inside;\nsetp.ne.s32 inside, %5, 0;\n@inside ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w) : "l"(from), "r"(int(inside)));
  } else if (inside) {
    value = *reinterpret_cast<const Vec<T, kCount>*>(tensor + at);
  }
  return value;
}
)"},
    {"cp_async_commit", "", R"(
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
)"},
    {"cp_async_wait", "", R"(
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
)"},
    {"pack_f16", "", R"(
// Two neighbouring elements of an operand, rounded, in one register.
__device__ __forceinline__ unsigned pack_f16(float even, float odd) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
  return pair;
}
)"},
    {"pack_bf16", "", R"(
// Two neighbouring elements of an operand, rounded, in one register.
__device__ __forceinline__ unsigned pack_bf16(float even, float odd) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
  return pair;
}
)"},
    {"fragment_tf32", "", R"(
// The bits of four floats become those of the nearest with 10 bits of mantissa, even ones of two.
__device__ __forceinline__ void fragment_tf32(unsigned (&fragment)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float value = __uint_as_float(fragment[i]);
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(fragment[i]) : "f"(value));
#else
    const unsigned rounded = (fragment[i] + 0xfffu + (fragment[i] >> 13 & 1u)) & ~0x1fffu;
    fragment[i] = value != value ? 0x7fffe000u : rounded;
#endif
  }
}
)"},
    {"add_part", "", R"(
// What tensor cores summed in few bits, onto the sums in all of them, which are runs of kRun registers, kPitch apart: after
// they are done, not before.
template <int kFrom, int kRun, int kPitch, int kSums, int kCount>
__device__ __forceinline__ void add_part(float (&sum)[kSums], float (&part)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(part[i]));
    sum[kFrom + i / kRun * kPitch + i % kRun] += part[i];
  }
}
)"},
    {"CUtensorMap", "", "struct alignas(64) CUtensorMap {\n  unsigned long long opaque[16];\n};\n"},
    {"barrier_init", "", R"(
__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
)"},
    {"barrier_init_fence", "", R"(
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
)"},
    {"barrier_arrive", "", R"(
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(barrier) : "memory");
}
)"},
    {"barrier_arrive_in", "", R"(
// At the barrier in this place of a block of the cluster, as CUTLASS does: those who arrive have read, and
// written nothing that the other block must see, so that the cluster's release (a fence of the whole device)
// is not needed.
__device__ __forceinline__ void barrier_arrive_in(unsigned barrier, int block) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier), "r"(block)
               : "memory");
}
)"},
    {"cluster_sync", "", R"(
// All threads of all blocks of the cluster meet; barriers that were set up before are there for all after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
)"},
    {"cluster_leave", "", R"(
// All threads of all blocks of the cluster meet before the blocks end. The release orders their arrivals at each other's
// barriers before the end: a late arrival would write to shared memory that belongs to another block by then.
__device__ __forceinline__ void cluster_leave() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
)"},
    {"cluster_arrive", "", R"(
// The same in two steps.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
)"},
    {"cluster_wait", "", R"(
// Of blocks that have arrived.
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
)"},
    {"send_to_block", "shared_address", R"(
// To this place of a block of the cluster, where it counts at the barrier.
template <typename T>
__device__ __forceinline__ void send_to_block(T value, T* to, unsigned barrier, int block) {
  const unsigned place = shared_address(to);
  if constexpr (sizeof(T) == 4) {
    asm volatile(
        "{\n.reg .b32 there, full;\nmapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 full, %1, %3;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %2, [full];\n}" ::"r"(place),
        "r"(barrier), "r"(reinterpret_cast<const unsigned&>(value)), "r"(block)
        : "memory");
  } else {
    static_assert(sizeof(T) == 8, "registers of 4 or 8 bytes");
    asm volatile(
        "{\n.reg .b32 there, full;\nmapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 full, %1, %3;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %2, [full];\n}" ::"r"(place),
        "r"(barrier), "l"(reinterpret_cast<const unsigned long long&>(value)), "r"(block)
        : "memory");
  }
}
)"},
    {"barrier_arrive_expect", "", R"(
__device__ __forceinline__ void barrier_arrive_expect(unsigned barrier, int bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(barrier), "r"(bytes)
               : "memory");
}
)"},
    {"barrier_wait", "", R"(
// Until the phase of this parity is complete.
__device__ __forceinline__ void barrier_wait(unsigned barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra waiting;\n}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}
)"},
    {"flag_raise", "", R"(
// What this thread, and those that it met, wrote before is there for who awaits the flag.
__device__ __forceinline__ void flag_raise(int* flag) {
  asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(flag) : "memory");
}
)"},
    {"flag_await", "", R"(
__device__ __forceinline__ void flag_await(const int* flag) {
  int raised;
  do {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  } while (raised == 0);
}
)"},
    {"team_sync", "", R"(
// A barrier of some warps of the block.
__device__ __forceinline__ void team_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
)"},
    {"team_arrive", "", R"(
// Arrives at a barrier of some warps of the block, without waiting.
__device__ __forceinline__ void team_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
)"},
    {"registers_dec", "", R"(
template <int kRegisters>
__device__ __forceinline__ void registers_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
)"},
    {"registers_inc", "", R"(
template <int kRegisters>
__device__ __forceinline__ void registers_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
)"},
    {"async_fence", "", R"(
// Ordinary writes to shared memory before are visible to bulk copies and wgmma after.
__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
)"},
    {"bulk_commit", "", R"(
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
)"},
    {"bulk_wait", "", R"(
// Until all but so many groups of bulk stores have read their shared memory.
template <int kPending>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
)"},
    {"wgmma_fence", "", R"(
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
)"},
    {"wgmma_commit", "", R"(
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
)"},
    {"wgmma_wait", "", R"(
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
)"},
    {"keep_behind", "", R"(
// Keeps the instructions that follow behind a wait for products. ptxas (CUDA 13.0) has been seen to read sums
// before the wait where the loop of the products is unrolled. It moves nothing across an exit. This exit is
// never taken: no kernel has 4 GB of shared memory.
__device__ __forceinline__ void keep_behind() {
  asm volatile(
      "{\n.reg .pred never;\n.reg .u32 bytes;\nmov.u32 bytes, %dynamic_smem_size;\n"
      "setp.eq.u32 never, bytes, 0xffffffff;\n@never exit;\n}" ::: "memory");
}
)"},
    {"wgmma_operand", "", R"(
// The operand is in these registers here: before the wgmma_fence that follows, not after it.
__device__ __forceinline__ void wgmma_operand(unsigned (&a)[4]) {
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
}
)"},
    {"wgmma_tile", "", R"(
// The descriptor of a swizzled tile in shared memory: its address, the bytes from one block of columns to the next, and
// from one group of 8 rows to the next. kMode: 1, 2, 3 for swizzles of 128, 64, 32 bytes.
template <int kMode>
__device__ __forceinline__ unsigned long long wgmma_tile(unsigned address, int block_bytes, int group_bytes) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | static_cast<unsigned long long>(block_bytes >> 4) << 16 |
         static_cast<unsigned long long>(group_bytes >> 4) << 32 | static_cast<unsigned long long>(kMode) << 62;
}
)"},
};

}  // namespace

std::span<const PreludeFragment> TensorCoreFragments() { return kFragments; }

}  // namespace mycc
