// OpenBLAS's way of computing a plain matrix product; it packs its operands in every call.
#include <cblas.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/perf/peer_workloads.h"
#include "tests/perf/timer.h"

namespace mycc {
namespace {

std::vector<float> RandomFloats(size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

}  // namespace

bool TimeOpenBlas(const PeerWorkload& w, double budget_seconds) {
  if (w.kind != PeerKind::kGemm || w.epilogue != Epilogue::kNone) return false;
  std::mt19937 random(1);
  const size_t m = w.m, n = w.n, k = w.k;
  const std::vector<float> a = RandomFloats(m * k, random), b = RandomFloats(k * n, random);
  std::vector<float> c(m * n);
  const std::string name(w.name);
  const double gemm = MedianMilliseconds(
      [&] {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, w.m, w.n, w.k, 1.0f, a.data(), w.k, b.data(),
                    w.n, 0.0f, c.data(), w.n);
      },
      budget_seconds);
  std::printf("%s openblas.gemm %.6f\n", name.c_str(), gemm);
  if (w.m == 1) {
    const double gemv = MedianMilliseconds(
        [&] {
          cblas_sgemv(CblasRowMajor, CblasTrans, w.k, w.n, 1.0f, b.data(), w.n, a.data(), 1, 0.0f, c.data(),
                      1);
        },
        budget_seconds);
    std::printf("%s openblas.gemv %.6f\n", name.c_str(), gemv);
  }
  return true;
}

}  // namespace mycc
