// The prelude's device functions for tensor cores and asynchronous copies, as CUDA C++ source around PTX.
#include "codegen/cuda/prelude_fragments.h"

namespace mycc {

// PTX of sm_80: cp.async; and of sm_90: mbarriers, bulk tensor copies, wgmma. [PTX ISA 8.x]
namespace {

constexpr PreludeFragment kTensorCoreFragments[] = {
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
    Ptx("cp_async_commit", "", "cp.async.commit_group;"),
    Ptx("cp_async_wait", "kPending", "cp.async.wait_group %0;"),
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
    Ptx("barrier_init", "unsigned barrier, int arrivals", "mbarrier.init.shared::cta.b64 [%0], %1;"),
    Ptx("barrier_init_fence", "", "fence.mbarrier_init.release.cluster;"),
    Ptx("barrier_arrive", "unsigned barrier",
        R"({\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n})"),
    Ptx("barrier_arrive_in", "unsigned barrier, int block",
        R"({\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n)"
        R"(mbarrier.arrive.shared::cluster.b64 _, [there];\n})",
        "At the barrier in this place of a block of the cluster, as CUTLASS does: those who arrive have\n"
        "read, and written nothing that the other block must see, so that the cluster's release (a fence\n"
        "of the whole device) is not needed."),
    Ptx("cluster_sync", "", R"(barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;)",
        "All threads of all blocks of the cluster meet; barriers that were set up before are there for\n"
        "all after."),
    Ptx("cluster_leave", "", R"(barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;)",
        "All threads of all blocks of the cluster meet before the blocks end. The release orders their\n"
        "arrivals at each other's barriers before the end: a late arrival would write to shared memory\n"
        "that belongs to another block by then."),
    Ptx("cluster_arrive", "", "barrier.cluster.arrive.relaxed;", "The same in two steps."),
    Ptx("cluster_wait", "", "barrier.cluster.wait.acquire;", "Of blocks that have arrived."),
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
    Ptx("barrier_arrive_expect", "unsigned barrier, int bytes",
        R"({\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n})"),
    Ptx("barrier_wait", "unsigned barrier, int parity",
        R"({\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n)"
        R"(@!done bra waiting;\n})",
        "Until the phase of this parity is complete."),
    Ptx("flag_raise", "int* flag", "st.release.gpu.global.b32 [%0], 1;",
        "What this thread, and those that it met, wrote before is there for who awaits the flag."),
    {"flag_await", "", R"(
__device__ __forceinline__ void flag_await(const int* flag) {
  int raised;
  do {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  } while (raised == 0);
}
)"},
    Ptx("team_sync", "int barrier, int threads", "bar.sync %0, %1;", "A barrier of some warps of the block."),
    Ptx("team_arrive", "int barrier, int threads", "bar.arrive %0, %1;",
        "Arrives at a barrier of some warps of the block, without waiting."),
    Ptx("registers_dec", "kRegisters", "setmaxnreg.dec.sync.aligned.u32 %0;", "", /*of_memory=*/false),
    Ptx("registers_inc", "kRegisters", "setmaxnreg.inc.sync.aligned.u32 %0;", "", /*of_memory=*/false),
    Ptx("async_fence", "", "fence.proxy.async.shared::cta;",
        "Ordinary writes to shared memory before are visible to bulk copies and wgmma after."),
    Ptx("bulk_commit", "", "cp.async.bulk.commit_group;"),
    Ptx("bulk_wait", "kPending", "cp.async.bulk.wait_group.read %0;",
        "Waits until at most kPending groups of bulk stores still read shared memory."),
    Ptx("wgmma_fence", "", "wgmma.fence.sync.aligned;"),
    Ptx("wgmma_commit", "", "wgmma.commit_group.sync.aligned;"),
    Ptx("wgmma_wait", "kPending", "wgmma.wait_group.sync.aligned %0;"),
    Ptx("keep_behind", "",
        R"({\n.reg .pred never;\n.reg .u32 bytes;\nmov.u32 bytes, %dynamic_smem_size;\n)"
        R"(setp.eq.u32 never, bytes, 0xffffffff;\n@never exit;\n})",
        "Keeps the instructions that follow behind a wait for products. ptxas (CUDA 13.0) has been seen to\n"
        "read sums before the wait where the loop of the products is unrolled. It moves nothing across an\n"
        "exit. This exit is never taken: no kernel has 4 GB of shared memory."),
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

std::span<const PreludeFragment> TensorCoreFragments() { return kTensorCoreFragments; }

}  // namespace mycc
