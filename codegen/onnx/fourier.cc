#include "codegen/onnx/fourier.h"

#include <algorithm>
#include <cmath>

#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

// Up to here a product, which all cores and a GPU compute, is faster than the kernel.
constexpr int64_t kMostFourierTable = 3 << 21;

// cos(2 pi k / n), exact for quarters of a turn.
double CosineOf(int64_t k, int64_t n) {
  k %= n;
  if (4 * k % n == 0) return 4 * k / n == 0 ? 1 : 4 * k / n == 2 ? -1 : 0;
  return std::cos(2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
}

double SineOf(int64_t k, int64_t n) {
  k %= n;
  if (4 * k % n == 0) return 4 * k / n == 1 ? 1 : 4 * k / n == 3 ? -1 : 0;
  return std::sin(2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
}

// The factors of the signal's elements in those of the result: table[result, signal, part of the signal, part
// of the result].
NDArray FourierTable(const FourierTransform& t, DType dtype, std::vector<int64_t> shape) {
  NDArray table = NDArray::Zeros(dtype, std::move(shape));
  const double sign = t.is_inverse ? 1 : -1;
  int64_t at = 0;
  for (int64_t k = 0; k < table.shape[0]; ++k) {
    for (int64_t n = 0; n < table.shape[1]; ++n) {
      double scale = t.is_inverse ? 1 / static_cast<double>(t.length) : 1;
      // The half of a spectrum that is left out adds the same.
      if (t.is_inverse && t.is_one_sided && n != 0 && 2 * n != t.length) scale *= 2;
      const double real = scale * CosineOf(k * n, t.length),
                   imaginary = sign * scale * SineOf(k * n, t.length);
      for (int64_t from = 0; from < table.shape[2]; ++from) {
        for (int64_t to = 0; to < table.shape[3]; ++to) {
          const double value = from == to ? real : from == 0 ? imaginary : -imaginary;
          table.Set(at++, Scalar{RoundFloat(dtype, value), 0});
        }
      }
    }
  }
  return table;
}

}  // namespace

int64_t TransformedExtent(const FourierTransform& transform) {
  return transform.is_one_sided && !transform.is_inverse ? transform.length / 2 + 1 : transform.length;
}

int64_t TransformedParts(const FourierTransform& transform) {
  return transform.is_one_sided && transform.is_inverse ? 1 : 2;
}

Buffer Transformed(GraphBuilder& g, const Buffer& x, const FourierTransform& t) {
  const int64_t extent = TransformedExtent(t), parts = TransformedParts(t);
  const int64_t most = t.is_one_sided && t.is_inverse ? t.length / 2 + 1 : t.length;
  const int64_t used = std::min(x->shape[1], most);
  const std::vector<int64_t> shape = {x->shape[0], extent, x->shape[2], parts};
  if (extent * used > kMostFourierTable / (parts * x->shape[3]))
    return g.Call("dft", {t.length, t.is_inverse, t.is_one_sided}, {x}, {{x->dtype, shape}})[0];
  const Buffer table = g.AddConstant(FourierTable(t, x->dtype, {extent, used, x->shape[3], parts}));
  return g.Reduce(ReduceOp::kSum, shape, {used, x->shape[3]}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0], a[2], r[1]}) * Load(table, {a[1], r[0], r[1], a[3]});
  });
}

}  // namespace mycc::onnx
