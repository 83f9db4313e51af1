#include "worker/vector_loops.h"

#include <immintrin.h>

namespace mycc {
namespace {

constexpr int kLoopChains = VectorLoops::kChains;
constexpr size_t kReadBytes = VectorLoops::kReadStep;

// The loops of one instruction set. The compiler knows nothing of their values, and believes that they are
// needed.
#define MYCC_VECTOR_LOOPS(Width, isa, Floats, Integers, set, fma, load, either)              \
  __attribute__((target(isa))) void Independent##Width(int64_t rounds) {                     \
    Floats half = set(0.5f), chains[kLoopChains];                                            \
    asm volatile("" : "+x"(half));                                                           \
    for (Floats & chain : chains) chain = half;                                              \
    for (int64_t round = 0; round < rounds; ++round) {                                       \
      _Pragma("GCC unroll 12") for (Floats & chain : chains) chain = fma(chain, half, half); \
    }                                                                                        \
    for (Floats & chain : chains) asm volatile("" : : "x"(chain));                           \
  }                                                                                          \
  __attribute__((target(isa))) void Dependent##Width(int64_t rounds) {                       \
    Floats half = set(0.5f), chain = half;                                                   \
    for (int64_t round = 0; round < rounds; ++round) {                                       \
      asm volatile("" : "+x"(half)); /* may be another now */                                \
      chain = fma(chain, half, half);                                                        \
    }                                                                                        \
    asm volatile("" : : "x"(chain));                                                         \
  }                                                                                          \
  __attribute__((target(isa))) void Read##Width(const void* from, size_t bytes) {            \
    constexpr int kVectors = kReadBytes / sizeof(Integers);                                  \
    const char* at = static_cast<const char*>(from);                                         \
    Integers sums[kVectors] = {};                                                            \
    for (const char* const end = at + bytes; at < end; at += kReadBytes) {                   \
      const auto* const vectors = reinterpret_cast<const Integers*>(at);                     \
      _Pragma("GCC unroll 16") for (int i = 0; i < kVectors; ++i) sums[i] =                  \
          either(sums[i], load(vectors + i));                                                \
    }                                                                                        \
    for (Integers & sum : sums) asm volatile("" : : "x"(sum));                               \
  }

#define MYCC_PRODUCT_AND_SUM(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)

MYCC_VECTOR_LOOPS(512, "avx512f", __m512, __m512i, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_load_si512,
                  _mm512_or_si512)
MYCC_VECTOR_LOOPS(256, "avx2,fma", __m256, __m256i, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_load_si256,
                  _mm256_or_si256)
MYCC_VECTOR_LOOPS(128, "sse2", __m128, __m128i, _mm_set1_ps, MYCC_PRODUCT_AND_SUM, _mm_load_si128,
                  _mm_or_si128)

#undef MYCC_PRODUCT_AND_SUM
#undef MYCC_VECTOR_LOOPS

}  // namespace

const VectorLoops& WidestLoops() {
  static constexpr VectorLoops k512 = {16, Independent512, Dependent512, Read512};
  static constexpr VectorLoops k256 = {8, Independent256, Dependent256, Read256};
  static constexpr VectorLoops k128 = {4, Independent128, Dependent128, Read128};
  if (__builtin_cpu_supports("avx512f")) return k512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? k256 : k128;
}

}  // namespace mycc
