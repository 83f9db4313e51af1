// Plain C++ loops with OpenMP for the row workloads, compiled with -O3 -march=native -ffast-math so that the
// C library's vector functions may be used: what a programmer gets without a library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/perf/peer_workloads.h"
#include "tests/perf/timer.h"

namespace mycc {
namespace {

void Softmax(const float* x, float* y, int m, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < m; ++i) {
    const float* in = x + static_cast<size_t>(i) * n;
    float* out = y + static_cast<size_t>(i) * n;
    float highest = in[0];
    for (int j = 1; j < n; ++j) highest = std::max(highest, in[j]);
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += out[j] = std::exp(in[j] - highest);
    const float scale = 1 / sum;
    for (int j = 0; j < n; ++j) out[j] *= scale;
  }
}

void LayerNorm(const float* x, const float* scale, const float* shift, float* y, int m, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < m; ++i) {
    const float* in = x + static_cast<size_t>(i) * n;
    float* out = y + static_cast<size_t>(i) * n;
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += in[j];
    const float mean = sum / static_cast<float>(n);
    float squares = 0;
    for (int j = 0; j < n; ++j) squares += (in[j] - mean) * (in[j] - mean);
    const float inverse = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int j = 0; j < n; ++j) out[j] = (in[j] - mean) * inverse * scale[j] + shift[j];
  }
}

// Blocks of whole cache lines, turned in a buffer of their own: rows a power of two apart would evict each
// other otherwise.
void Transpose(const float* x, float* y, int m, int n) {
  constexpr int kBlock = 16;
#pragma omp parallel for schedule(static) collapse(2)
  for (int i0 = 0; i0 < m; i0 += kBlock) {
    for (int j0 = 0; j0 < n; j0 += kBlock) {
      const int rows = std::min(kBlock, m - i0), columns = std::min(kBlock, n - j0);
      float block[kBlock][kBlock];
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) block[j][i] = x[static_cast<size_t>(i0 + i) * n + j0 + j];
      }
      for (int j = 0; j < columns; ++j) std::copy_n(block[j], rows, y + static_cast<size_t>(j0 + j) * m + i0);
    }
  }
}

void Gelu(const float* x, float* y, int m, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < m; ++i) {
    const float* in = x + static_cast<size_t>(i) * n;
    float* out = y + static_cast<size_t>(i) * n;
    for (int j = 0; j < n; ++j) {
      const float v = in[j];
      out[j] = 0.5f * v * (1 + std::tanh(0.7978846f * (v + 0.044715f * v * v * v)));
    }
  }
}

}  // namespace

bool TimeLoops(const PeerWorkload& w, double budget_seconds) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(static_cast<size_t>(w.m) * w.n), y(x.size()), scale(w.n), shift(w.n);
  for (std::vector<float>* values : {&x, &scale, &shift}) {
    for (float& value : *values) value = uniform(random);
  }
  const auto time = [&](auto&& loops) {
    std::printf("%s loops %.6f\n", std::string(w.name).c_str(), MedianMilliseconds(loops, budget_seconds));
    return true;
  };
  switch (w.kind) {
    case PeerKind::kSoftmax: return time([&] { Softmax(x.data(), y.data(), w.m, w.n); });
    case PeerKind::kLayerNorm:
      return time([&] { LayerNorm(x.data(), scale.data(), shift.data(), y.data(), w.m, w.n); });
    case PeerKind::kTranspose: return time([&] { Transpose(x.data(), y.data(), w.m, w.n); });
    case PeerKind::kGelu: return time([&] { Gelu(x.data(), y.data(), w.m, w.n); });
    default: return false;
  }
}

}  // namespace mycc
