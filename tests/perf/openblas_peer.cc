// OpenBLAS's ways of computing matrix products; it packs its operands in every call. f32 alone: Debian's
// build has no product of bf16.
#include <cblas.h>

#include <vector>

#include "tests/perf/peer_workloads.h"
#include "tests/perf/timer.h"

namespace mycc {
namespace {

// Calls `f` once and compares its result, then times it.
template <typename F>
void Time(const PeerWorkload& w, const PeerData& data, const char* way, const std::vector<float>& c,
          double budget_seconds, F&& f) {
  f();
  const double difference = data.Difference(2, c.data(), c.size());
  PrintPeer(w.spec, way, MedianMilliseconds(f, budget_seconds), difference);
}

void TimeGemm(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  const size_t m = w.m, n = w.n, k = w.k;
  const std::vector<float> a = data.Floats(0, m * k), b = data.Floats(1, k * n);
  std::vector<float> c(m * n);
  const CBLAS_TRANSPOSE trans = w.transposed ? CblasTrans : CblasNoTrans;
  const int b_stride = w.transposed ? w.k : w.n;
  Time(w, data, "openblas.gemm", c, budget_seconds, [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, trans, w.m, w.n, w.k, 1.0f, a.data(), w.k, b.data(), b_stride,
                0.0f, c.data(), w.n);
  });
  if (w.transposed) return;
  if (w.m == 1) {
    Time(w, data, "openblas.gemv", c, budget_seconds, [&] {
      cblas_sgemv(CblasRowMajor, CblasTrans, w.k, w.n, 1.0f, b.data(), w.n, a.data(), 1, 0.0f, c.data(), 1);
    });
  } else if (w.n == 1) {
    Time(w, data, "openblas.gemv", c, budget_seconds, [&] {
      cblas_sgemv(CblasRowMajor, CblasNoTrans, w.m, w.k, 1.0f, a.data(), w.k, b.data(), 1, 0.0f, c.data(), 1);
    });
  }
}

// One product after the other with all threads, and products side by side with one thread each.
void TimeBatchedGemm(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  const size_t m = w.m, n = w.n, k = w.k, batch = w.batch;
  const std::vector<float> a = data.Floats(0, batch * m * k), b = data.Floats(1, batch * k * n);
  std::vector<float> c(batch * m * n);
  const auto product = [&](size_t g) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, w.m, w.n, w.k, 1.0f, a.data() + g * m * k, w.k,
                b.data() + g * k * n, w.n, 0.0f, c.data() + g * m * n, w.n);
  };
  Time(w, data, "openblas.loop", c, budget_seconds, [&] {
    for (size_t g = 0; g < batch; ++g) product(g);
  });
  Time(w, data, "openblas.parallel", c, budget_seconds, [&] {
#pragma omp parallel for schedule(static)
    for (size_t g = 0; g < batch; ++g) product(g);
  });
}

}  // namespace

void TimeOpenBlas(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  if (w.a != PeerType::kF32 || w.epilogue != Epilogue::kNone) return;
  if (w.kind == PeerKind::kGemm) TimeGemm(w, data, budget_seconds);
  if (w.kind == PeerKind::kBatchedGemm) TimeBatchedGemm(w, data, budget_seconds);
}

}  // namespace mycc
