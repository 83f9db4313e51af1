// Plain C++ loops with OpenMP for the row workloads, compiled with -O3 -ffast-math for AVX-512 and for AVX2
// so that the C library's vector functions may be used: what a programmer gets without a library.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/perf/peer_workloads.h"
#include "tests/perf/timer.h"

// The widest vectors of the machine at hand, chosen when the program is loaded. On functions without OpenMP:
// what it makes of a loop would be compiled for the oldest machine alone.
#define MYCC_FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

namespace mycc {
namespace {

MYCC_FOR_THIS_CPU void SoftmaxRow(const float* in, float* out, int n) {
  float highest = in[0];
  for (int j = 1; j < n; ++j) highest = std::max(highest, in[j]);
  float sum = 0;
  for (int j = 0; j < n; ++j) sum += out[j] = std::exp(in[j] - highest);
  const float scale = 1 / sum;
  for (int j = 0; j < n; ++j) out[j] *= scale;
}

MYCC_FOR_THIS_CPU void LayerNormRow(const float* in, const float* scale, const float* shift, float* out,
                                    int n) {
  float sum = 0;
  for (int j = 0; j < n; ++j) sum += in[j];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
  for (int j = 0; j < n; ++j) squares += (in[j] - mean) * (in[j] - mean);
  const float inverse = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
  for (int j = 0; j < n; ++j) out[j] = (in[j] - mean) * inverse * scale[j] + shift[j];
}

constexpr int kBlock = 16;

// Rows i0... of an m x n matrix, turned in blocks of whole cache lines with a buffer of their own: rows a
// power of two apart would evict each other otherwise.
MYCC_FOR_THIS_CPU void TransposeRows(const float* x, float* y, int i0, int m, int n) {
  const int rows = std::min(kBlock, m - i0);
  for (int j0 = 0; j0 < n; j0 += kBlock) {
    const int columns = std::min(kBlock, n - j0);
    float block[kBlock][kBlock];
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) block[j][i] = x[static_cast<size_t>(i0 + i) * n + j0 + j];
    }
    for (int j = 0; j < columns; ++j) std::copy_n(block[j], rows, y + static_cast<size_t>(j0 + j) * m + i0);
  }
}

MYCC_FOR_THIS_CPU void GeluRow(const float* in, float* out, int n) {
  for (int j = 0; j < n; ++j) {
    const float v = in[j];
    out[j] = 0.5f * v * (1 + std::tanh(0.7978846f * (v + 0.044715f * v * v * v)));
  }
}

MYCC_FOR_THIS_CPU void ChainRow(const float* in, float* out, int n) {
  for (int j = 0; j < n; ++j) out[j] = 1 / (1 + std::exp(-(std::max(in[j], 0.0f) * 2 + 1)));
}

// Calls a function of each row's first element.
template <typename F>
void ForRows(const PeerWorkload& w, F&& row) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < w.m; ++i) row(static_cast<size_t>(i) * w.n);
}

}  // namespace

void TimeLoops(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  const size_t count = static_cast<size_t>(w.m) * w.n;
  std::vector<float> y(count);
  const auto time = [&](int inputs, auto&& loops) {
    loops();
    const double difference = data.Difference(inputs, y.data(), y.size());
    PrintPeer(w.spec, "loops", MedianMilliseconds(loops, budget_seconds), difference);
  };
  const auto time_rows = [&](void (*row)(const float*, float*, int)) {
    const std::vector<float> x = data.Floats(0, count);
    time(1, [&] { ForRows(w, [&](size_t at) { row(x.data() + at, y.data() + at, w.n); }); });
  };
  switch (w.kind) {
    case PeerKind::kSoftmax: return time_rows(SoftmaxRow);
    case PeerKind::kGelu: return time_rows(GeluRow);
    case PeerKind::kChain: return time_rows(ChainRow);
    case PeerKind::kLayerNorm: {
      const std::vector<float> x = data.Floats(0, count), scale = data.Floats(1, w.n),
                               shift = data.Floats(2, w.n);
      return time(3, [&] {
        ForRows(w, [&](size_t at) {
          LayerNormRow(x.data() + at, scale.data(), shift.data(), y.data() + at, w.n);
        });
      });
    }
    case PeerKind::kTranspose: {
      const std::vector<float> x = data.Floats(0, count);
      return time(1, [&] {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < w.m; i += kBlock) TransposeRows(x.data(), y.data(), i, w.m, w.n);
      });
    }
    default: return;
  }
}

}  // namespace mycc
