// The part of CUDA C++ that C++ lacks, so that an emitted kernel compiles with the host's compiler and means
// the same. Included by what host_run.cc writes, nowhere else; host_threads.cc carries the threads out.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/cuda/host_api.h"

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

static mycc::HostThreads host;
extern "C" void bind_host(const mycc::HostThreads* threads) { host = *threads; }

static struct {
  struct {
    operator int() const { return host.thread(); }
  } x;
} threadIdx;
static struct {
  struct {
    operator int() const { return host.block(); }
  } x;
  unsigned z = 0;  // grids have one dimension
} blockIdx;
// The shared memory of a cluster's blocks, one after the other.
alignas(1024) unsigned char shared[mycc::kHostClusterBlocks * mycc::kHostSharedBytes];
static inline unsigned char* SharedOfBlock() { return shared + host.rank() * mycc::kHostSharedBytes; }

static inline void __syncthreads() { host.barrier(0, 0); }
static inline void BarrierOnHost(int number, int threads) { host.barrier(number, threads); }

template <typename T>
static T Exchange(unsigned mask, T value, int from) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = host.exchange(mask, bits, from);
  T result;
  memcpy(&result, &bits, sizeof(T));
  return result;
}
template <typename T>
static T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return Exchange(mask, value, (threadIdx.x ^ lanes) % 32);
}
template <typename T>
static T __shfl_sync(unsigned mask, T value, int from) {
  return Exchange(mask, value, from % 32);
}
static inline unsigned __ballot_sync(unsigned mask, bool condition) { return host.ballot(mask, condition); }

// Words of a vector; loads of them trap on addresses that a GPU refuses.
struct __attribute__((may_alias)) uint2 {
  unsigned x, y;
};
struct __attribute__((may_alias)) uint4 {
  unsigned x, y, z, w;
};
template <typename T>
static T __ldcs(const T* from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(T) != 0) __builtin_trap();
  return *from;
}

template <typename To, typename From>
static To BitsAs(From value) {
  To result;
  memcpy(&result, &value, sizeof(To));
  return result;
}
static inline float __uint_as_float(unsigned bits) { return BitsAs<float>(bits); }
static inline float __int_as_float(int bits) { return BitsAs<float>(bits); }
static inline unsigned __float_as_uint(float value) { return BitsAs<unsigned>(value); }
static inline double __longlong_as_double(long long bits) { return BitsAs<double>(bits); }
static inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
static inline double rsqrt(double value) { return 1.0 / sqrt(value); }

static inline float __double2float_rz(double value) {
  const float nearest = (float)value;
  return fabs((double)nearest) > fabs(value) ? nextafterf(nearest, 0.0f) : nearest;
}
template <typename To, typename From>
static To Truncate(From value, To low) {
  if (value != value) return 0;
  if (value >= -(From)low) return -(low + 1);
  return value < (From)low ? low : (To)value;
}
static inline int __float2int_rz(float value) { return Truncate<int>(value, INT32_MIN); }
static inline int __double2int_rz(double value) { return Truncate<int>(value, INT32_MIN); }
static inline long long __float2ll_rz(float value) { return Truncate<long long>(value, INT64_MIN); }
static inline long long __double2ll_rz(double value) { return Truncate<long long>(value, INT64_MIN); }
template <typename To, typename From>
static To TruncateUnsigned(From value) {
  const To most = ~To(0);
  if (!(value > 0)) return 0;
  return value >= (From)most ? most : (To)value;
}
static inline unsigned __float2uint_rz(float value) { return TruncateUnsigned<unsigned>(value); }
static inline unsigned __double2uint_rz(double value) { return TruncateUnsigned<unsigned>(value); }
static inline unsigned long long __float2ull_rz(float value) {
  return TruncateUnsigned<unsigned long long>(value);
}
static inline unsigned long long __double2ull_rz(double value) {
  return TruncateUnsigned<unsigned long long>(value);
}

// In place of PTX instructions.
static inline unsigned HostF16(float value) { return BitsAs<uint16_t>((_Float16)value); }
static inline float HostFromF16(unsigned short bits) { return (float)BitsAs<_Float16>(bits); }
static inline unsigned HostBF16(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value != value) return 0x7fff;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
static inline float HostMax(float a, float b) {
  if (a != a || b != b) return NAN;
  return a > b || (a == b && !signbit(a)) ? a : b;
}
static inline float HostMin(float a, float b) { return -HostMax(-a, -b); }

#include "tests/cuda/host_tensor_cores.h"

// A barrier in shared memory: a phase ends when its arrivals have come, and the bytes that they expect.
struct HostBarrier {
  uint16_t phase;
  uint8_t arrivals, missing;
  int32_t bytes;
  void MayEnd() {
    host.done();
    if (missing > 0 || bytes != 0) return;
    missing = arrivals;
    ++phase;
  }
};
static inline HostBarrier* HostBarrierAt(unsigned at) { return reinterpret_cast<HostBarrier*>(shared + at); }
static inline void HostBarrierInit(unsigned at, int arrivals) {
  *HostBarrierAt(at) = {0, (uint8_t)arrivals, (uint8_t)arrivals, 0};
}
static inline void HostBarrierExpect(unsigned at, int bytes) {
  HostBarrierAt(at)->bytes += bytes;
  --HostBarrierAt(at)->missing;
  HostBarrierAt(at)->MayEnd();
}
// Every other block is slow to go on: bytes that it has not read yet must not be overwritten.
static inline void HostBarrierWait(unsigned at, int parity) {
  while ((HostBarrierAt(at)->phase & 1) == parity) host.wait();
  for (int turn = host.rank() % 2 * 64; turn > 0; --turn) {
    host.done();
    host.wait();
  }
}
// From a block to that place of another one of its cluster.
template <typename Bits>
static void HostSend(unsigned to, unsigned barrier, Bits bits, int block) {
  const int there = (block - host.rank()) * mycc::kHostSharedBytes;
  HostBarrier* const counts = HostBarrierAt((int)barrier + there);
  memcpy(shared + (int)to + there, &bits, sizeof(Bits));
  counts->bytes -= sizeof(Bits);
  counts->MayEnd();
}

// A pointer of the type that a kernel's parameter has.
struct AnyPointer {
  void* pointer;
  template <typename T>
  operator T*() const {
    return (T*)pointer;
  }
};
