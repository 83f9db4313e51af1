// Measures the f32 fused-multiply-add peak of one thread: independent chains of vector FMAs in registers,
// with the widest vectors the CPU has. Prints `fma_peak_gflops_1t: VALUE`, the best of many short runs.
//
//   fma_peak [SECONDS]    1 when not given
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

// Two FMA units of up to five cycles' latency need ten chains in flight.
constexpr int kChains = 12;
constexpr int kSteps = 200'000;

using Clock = std::chrono::steady_clock;

struct Kernel {
  const char* name;
  int lanes;
  float (*run)(int steps);  // returns a sum, so that the work is needed
};

__attribute__((target("avx2,fma"))) float RunAvx2(int steps) {
  const __m256 scale = _mm256_set1_ps(0.999f), shift = _mm256_set1_ps(0.001f);
  __m256 chains[kChains];
  for (__m256& chain : chains) chain = _mm256_set1_ps(1.0f);
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = _mm256_fmadd_ps(chains[i], scale, shift);
  }
  __m256 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm256_add_ps(sum, chains[i]);
  return _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) float RunAvx512(int steps) {
  const __m512 scale = _mm512_set1_ps(0.999f), shift = _mm512_set1_ps(0.001f);
  __m512 chains[kChains];
  for (__m512& chain : chains) chain = _mm512_set1_ps(1.0f);
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = _mm512_fmadd_ps(chains[i], scale, shift);
  }
  __m512 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_ps(sum, chains[i]);
  return _mm512_cvtss_f32(sum);
}

bool ChooseKernel(Kernel* kernel) {
  if (__builtin_cpu_supports("avx512f")) {
    *kernel = {"avx512", 16, RunAvx512};
    return true;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    *kernel = {"avx2", 8, RunAvx2};
    return true;
  }
  return false;
}

double MeasureGflops(const Kernel& kernel, double seconds) {
  const double flops = 2.0 * kernel.lanes * kChains * kSteps;
  volatile float sink = 0;
  double best = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto start = Clock::now();
    sink = kernel.run(kSteps);
    best = std::max(best, flops / std::chrono::duration<double>(Clock::now() - start).count() / 1e9);
  } while (Clock::now() < end);
  static_cast<void>(sink);
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? std::atof(argv[1]) : 1.0;
  if (argc > 2 || seconds <= 0) {
    std::fprintf(stderr, "usage: fma_peak [SECONDS]\n");
    return 2;
  }
  Kernel kernel;
  if (!ChooseKernel(&kernel)) {
    std::fprintf(stderr, "fma_peak: this CPU has neither AVX2 with FMA nor AVX-512\n");
    return 1;
  }
  std::printf("fma_peak_isa: %s\n", kernel.name);
  std::printf("fma_peak_gflops_1t: %.1f\n", MeasureGflops(kernel, seconds));
  return 0;
}
