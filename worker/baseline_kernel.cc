#include "worker/baseline_kernel.h"

#include <immintrin.h>

#include <chrono>
#include <cstdint>
#include <vector>

// libgomp's own entry points, as generated code uses them: the baseline runs on the same team of threads. A
// second team would compete with the first one's spinning threads.
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num();
}

namespace mycc {
namespace {

constexpr int64_t kRounds = 400'000;  // about a millisecond at 3 GHz
constexpr int kResultStride = 16;     // floats: a cache line for each thread
constexpr int kChains = 12;           // hide the latency of a fused multiply-add on every core since Haswell

__attribute__((target("avx2,fma"))) float FusedRounds() {
  __m256 chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 scale = _mm256_set1_ps(0.5f), add = _mm256_set1_ps(1.0f);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kChains; ++i) chain[i] = _mm256_fmadd_ps(chain[i], scale, add);
  }
  __m256 sum = chain[0];
  for (int i = 1; i < kChains; ++i) sum = _mm256_add_ps(sum, chain[i]);
  return _mm256_cvtss_f32(sum);
}

float PlainRounds() {
  __m128 chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = _mm_set1_ps(static_cast<float>(i));
  const __m128 scale = _mm_set1_ps(0.5f), add = _mm_set1_ps(1.0f);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kChains; ++i) chain[i] = _mm_add_ps(_mm_mul_ps(chain[i], scale), add);
  }
  __m128 sum = chain[0];
  for (int i = 1; i < kChains; ++i) sum = _mm_add_ps(sum, chain[i]);
  return _mm_cvtss_f32(sum);
}

// One run of the kernel by every thread of a team.
void RunMember(void* results) {
  const bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  volatile float* mine = static_cast<volatile float*>(results) + kResultStride * omp_get_thread_num();
  *mine = fused ? FusedRounds() : PlainRounds();
}

double RunTeam(int threads) {
  std::vector<float> results(static_cast<size_t>(kResultStride * threads));
  const auto start = std::chrono::steady_clock::now();
  GOMP_parallel(RunMember, results.data(), static_cast<unsigned>(threads), 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double TimeBaseline(int threads) {
  static int warmed_up = 0;  // a team's first run makes its threads
  if (warmed_up != threads) {
    RunTeam(threads);
    warmed_up = threads;
  }
  return RunTeam(threads);
}

}  // namespace mycc
