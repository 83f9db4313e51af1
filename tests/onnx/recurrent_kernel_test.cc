// The recurrences of RNN, GRU and LSTM against loops over ONNX's equations.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "codegen/runtime/artifact/library_kernels.h"
#include "codegen/runtime/artifact/recurrent.h"
#include "tests/onnx/kernel_calls.h"

namespace mycc {
namespace {

constexpr int64_t kSteps = 5;

// A call, and the same numbers by name.
struct RecurrentCase {
  int64_t cell, directions, batch, hidden, flags;
  double clip = 0;
  int64_t gates() const { return cell == kMyccRnn ? 1 : cell == kMyccGru ? 3 : 4; }
  std::vector<int64_t> attributes;
  NDArray products, weights, lengths, h, c, peepholes, bias;  // weights[directions, gates, hidden, hidden]
};

double ActivationAt(const RecurrentCase& k, int64_t direction, int64_t which, double x) {
  const int64_t* a = &k.attributes[kMyccActivations + 9 * direction + 3 * which];
  const double alpha = std::bit_cast<double>(a[1]), beta = std::bit_cast<double>(a[2]);
  if (k.clip > 0 && which < 2) x = std::min(std::max(x, -k.clip), k.clip);
  switch (a[0]) {
    case kMyccRelu: return std::max(x, 0.0);
    case kMyccTanh: return std::tanh(x);
    case kMyccSigmoid: return 1 / (1 + std::exp(-x));
    case kMyccAffine: return alpha * x + beta;
    case kMyccLeakyRelu: return x >= 0 ? x : alpha * x;
    case kMyccThresholdedRelu: return x >= alpha ? x : 0;
    case kMyccScaledTanh: return alpha * std::tanh(beta * x);
    case kMyccHardSigmoid: return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case kMyccElu: return x >= 0 ? x : alpha * (std::exp(x) - 1);
    case kMyccSoftsign: return x / (1 + std::abs(x));
    default: return std::log(1 + std::exp(x));
  }
}

// One sequence of one direction.
class SequenceReference {
 public:
  SequenceReference(const RecurrentCase& k, int64_t direction, int64_t row)
      : k_(k), d_(direction), row_(row), h(k.hidden), c(k.hidden) {
    for (int64_t j = 0; j < k.hidden; ++j) {
      const int64_t at = (d_ * k.batch + row) * k.hidden + j;
      if (k.flags & kMyccHasH) h[j] = k.h.Get(at).f;
      if (k.flags & kMyccHasC) c[j] = k.c.Get(at).f;
    }
  }

  void Step(int64_t t) {
    t_ = t;
    std::vector<double> next(k_.hidden);
    if (k_.cell == kMyccRnn) {
      for (int64_t j = 0; j < k_.hidden; ++j) next[j] = Act(0, Input(0, j) + Product(h, 0, j));
    } else if (k_.cell == kMyccGru) {
      next = Gru();
    } else {
      next = Lstm();
    }
    h = next;
  }

 private:
  double Input(int64_t gate, int64_t j) const {
    return k_.products
        .Get((((t_ * k_.batch + row_) * k_.directions + d_) * k_.gates() + gate) * k_.hidden + j)
        .f;
  }
  double Product(const std::vector<double>& from, int64_t gate, int64_t j) const {
    double sum = 0;
    for (int64_t i = 0; i < k_.hidden; ++i)
      sum += from[i] * k_.weights.Get(((d_ * k_.gates() + gate) * k_.hidden + j) * k_.hidden + i).f;
    return sum;
  }
  double Peephole(int64_t gate, int64_t j) const {
    return k_.flags & kMyccHasPeepholes ? k_.peepholes.Get((d_ * 3 + gate) * k_.hidden + j).f : 0;
  }
  double Act(int64_t which, double x) const { return ActivationAt(k_, d_, which, x); }

  std::vector<double> Gru() const {
    std::vector<double> next(k_.hidden), r(k_.hidden), reset(k_.hidden);
    for (int64_t j = 0; j < k_.hidden; ++j) {
      r[j] = Act(0, Input(1, j) + Product(h, 1, j));
      reset[j] = r[j] * h[j];
    }
    for (int64_t j = 0; j < k_.hidden; ++j) {
      const double z = Act(0, Input(0, j) + Product(h, 0, j));
      const double inner = k_.flags & kMyccHasBias
                               ? r[j] * (Product(h, 2, j) + k_.bias.Get(d_ * k_.hidden + j).f)
                               : Product(reset, 2, j);
      next[j] = (1 - z) * Act(1, Input(2, j) + inner) + z * h[j];
    }
    return next;
  }

  std::vector<double> Lstm() {
    std::vector<double> next(k_.hidden);
    for (int64_t j = 0; j < k_.hidden; ++j) {
      const double i = Act(0, Input(0, j) + Product(h, 0, j) + Peephole(0, j) * c[j]);
      const double f = k_.flags & kMyccInputForget
                           ? 1 - i
                           : Act(0, Input(2, j) + Product(h, 2, j) + Peephole(2, j) * c[j]);
      c[j] = f * c[j] + i * Act(1, Input(3, j) + Product(h, 3, j));
      const double o = Act(0, Input(1, j) + Product(h, 1, j) + Peephole(1, j) * c[j]);
      next[j] = o * Act(2, c[j]);
    }
    return next;
  }

  const RecurrentCase& k_;
  const int64_t d_, row_;
  int64_t t_ = 0;

 public:
  std::vector<double> h, c;
};

// weights[d, g, output, input] in panels.
NDArray Panels(const NDArray& weights) {
  const int64_t matrices = weights.shape[0] * weights.shape[1], n = weights.shape[2];
  const int64_t panels = (n + kMyccPanel - 1) / kMyccPanel;
  NDArray packed = NDArray::Zeros(weights.dtype, {weights.shape[0], weights.shape[1], panels, n, kMyccPanel});
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t output = 0; output < n; ++output) {
      for (int64_t input = 0; input < n; ++input) {
        const int64_t at =
            ((m * panels + output / kMyccPanel) * n + input) * kMyccPanel + output % kMyccPanel;
        packed.Set(at, weights.Get((m * n + output) * n + input));
      }
    }
  }
  return packed;
}

RecurrentCase MakeCase(DType dtype, int64_t cell, int64_t directions, int64_t hidden, int64_t flags,
                       double clip, int64_t first_activation, int64_t batch = 4) {
  std::mt19937_64 random(static_cast<uint64_t>(cell * 1000 + flags * 7 + hidden));
  RecurrentCase k{cell, directions, batch, hidden, flags, clip, {}, {}, {}, {}, {}, {}, {}, {}};
  k.products = RandomArray(dtype, {kSteps, k.batch, directions, k.gates(), hidden}, 1, &random);
  k.weights = RandomArray(dtype, {directions, k.gates(), hidden, hidden}, 0.3, &random);
  k.lengths = NDArray::Zeros(DType::kI32, {k.batch});
  const int64_t lengths[] = {3, 0, INT32_MAX, INT32_MIN};  // the last two are outside
  for (int64_t i = 0; i < batch; ++i) k.lengths.Set(i, Scalar{0, lengths[i % 4]});
  k.h = RandomArray(dtype, {directions, k.batch, hidden}, 1, &random);
  k.c = RandomArray(dtype, {directions, k.batch, hidden}, 1, &random);
  k.peepholes = RandomArray(dtype, {directions, 3, hidden}, 1, &random);
  k.bias = RandomArray(dtype, {directions, hidden}, 1, &random);
  k.attributes = {cell, flags, std::bit_cast<int64_t>(clip)};
  for (int64_t i = 0; i < 3 * directions; ++i) {
    const int64_t standard = i % 3 == 0 ? kMyccSigmoid : kMyccTanh;
    k.attributes.push_back(first_activation < 0 ? standard : (first_activation + i) % (kMyccSoftplus + 1));
    k.attributes.push_back(std::bit_cast<int64_t>(0.4));
    k.attributes.push_back(std::bit_cast<int64_t>(0.3));
  }
  return k;
}

// A call of one instruction set.
std::vector<NDArray> CallWith(MyccRecurrentSet set, const std::vector<int64_t>& attributes,
                              std::vector<NDArray> inputs, const Outputs& outputs) {
  std::vector<NDArray> results;
  for (const auto& [dtype, shape] : outputs) results.push_back(NDArray::Zeros(dtype, shape));
  std::vector<MyccTensor> tensors;
  for (std::vector<NDArray>* arrays : {&inputs, &results}) {
    for (NDArray& array : *arrays)
      tensors.push_back({array.bytes.data(), static_cast<int64_t>(array.dtype), DTypeBytes(array.dtype),
                         static_cast<int64_t>(array.shape.size()), array.shape.data()});
  }
  std::vector<uint64_t> workspace(MyccRecurrentWorkspace(attributes.data(), tensors.data()) / 8 + 1);
  MyccRecurrentWith(set, attributes.data(), tensors.data(), reinterpret_cast<uint8_t*>(workspace.data()));
  return results;
}

void CheckResults(DType dtype, const RecurrentCase& k, const std::vector<NDArray>& got) {
  const double tolerance = dtype == DType::kF64 ? 1e-12 : 2e-5;
  for (int64_t row = 0; row < k.directions * k.batch; ++row) {
    const int64_t d = row / k.batch, b = row % k.batch;
    const int64_t given = k.flags & kMyccHasLengths ? k.lengths.Get(b).i : kSteps;
    const int64_t length = std::min(std::max<int64_t>(given, 0), kSteps);
    const bool is_reversed = d == 1 || (k.flags & kMyccFirstReversed);
    SequenceReference reference(k, d, b);
    for (int64_t number = 0; number < kSteps; ++number) {
      const int64_t t = is_reversed && number < length ? length - 1 - number : number;
      if (number < length) reference.Step(t);
      for (int64_t j = 0; j < k.hidden; ++j) {
        const int64_t at = ((t * k.directions + d) * k.batch + b) * k.hidden + j;
        ASSERT_NEAR(got[0].Get(at).f, number < length ? reference.h[j] : 0, tolerance)
            << "cell " << k.cell << " flags " << k.flags << " step " << t << " row " << row;
      }
    }
    for (int64_t j = 0; j < k.hidden; ++j) {
      ASSERT_NEAR(got[1].Get(row * k.hidden + j).f, reference.h[j], tolerance);
      if (k.cell == kMyccLstm) {
        ASSERT_NEAR(got[2].Get(row * k.hidden + j).f, reference.c[j], tolerance);
      }
    }
  }
}

void CheckCase(DType dtype, const RecurrentCase& k) {
  std::vector<NDArray> inputs = {k.products, Panels(k.weights)};
  if (k.flags & kMyccHasLengths) inputs.push_back(k.lengths);
  if (k.flags & kMyccHasH) inputs.push_back(k.h);
  if (k.flags & kMyccHasC) inputs.push_back(k.c);
  if (k.flags & kMyccHasPeepholes) inputs.push_back(k.peepholes);
  if (k.flags & kMyccHasBias) inputs.push_back(k.bias);
  const std::vector<int64_t> state = {k.directions, k.batch, k.hidden};
  Outputs outputs = {{dtype, {kSteps, k.directions, k.batch, k.hidden}}, {dtype, state}};
  if (k.cell == kMyccLstm) outputs.emplace_back(dtype, state);
  CheckResults(dtype, k, CallKernel("recurrent", k.attributes, inputs, outputs));
  for (int set = kMyccRecurrentBase; set < MyccBestRecurrentSet(); ++set)
    CheckResults(dtype, k, CallWith(static_cast<MyccRecurrentSet>(set), k.attributes, inputs, outputs));
}

TEST(RecurrentKernelTest, CellsWithEveryOption) {
  const int64_t all = kMyccHasLengths | kMyccHasH;
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t hidden : {1, 5, 32, 45}) {
      for (int64_t directions : {1, 2}) {
        for (int64_t flags : {int64_t{0}, all, all | kMyccFirstReversed}) {
          CheckCase(dtype, MakeCase(dtype, kMyccRnn, directions, hidden, flags, 0, -1));
          CheckCase(dtype, MakeCase(dtype, kMyccGru, directions, hidden, flags, 0, -1));
          CheckCase(dtype, MakeCase(dtype, kMyccGru, directions, hidden, flags | kMyccHasBias, 0.4, -1));
          CheckCase(dtype, MakeCase(dtype, kMyccLstm, directions, hidden, flags, 0.4, -1));
          const int64_t full = flags | kMyccHasC | kMyccHasPeepholes;
          CheckCase(dtype, MakeCase(dtype, kMyccLstm, directions, hidden, full, 0, -1));
          CheckCase(dtype, MakeCase(dtype, kMyccLstm, directions, hidden, full | kMyccInputForget, 0, -1));
        }
      }
    }
  }
}

// One row, or a few that are left over, are multiplied in other ways than four.
TEST(RecurrentKernelTest, BatchesOfEverySize) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t batch : {1, 2, 3, 5, 7, 8}) {
      for (int64_t hidden : {3, 34, 64}) {
        CheckCase(dtype, MakeCase(dtype, kMyccRnn, 1, hidden, 0, 0, -1, batch));
        CheckCase(dtype, MakeCase(dtype, kMyccGru, 2, hidden, kMyccHasH, 0, -1, batch));
        CheckCase(dtype, MakeCase(dtype, kMyccLstm, 1, hidden, kMyccHasLengths, 0, -1, batch));
      }
    }
  }
}

TEST(RecurrentKernelTest, EveryActivation) {
  for (int64_t first = 0; first <= kMyccSoftplus; ++first) {
    CheckCase(DType::kF64, MakeCase(DType::kF64, kMyccRnn, 2, 7, 0, 1, first));
    CheckCase(DType::kF64, MakeCase(DType::kF64, kMyccLstm, 2, 7, 0, 1, first));
  }
}

// Sigmoid and tanh of f32 keep their bits over their whole range.
TEST(RecurrentKernelTest, ActivationsOfSmallAndLargeNumbers) {
  const std::vector<double> numbers = {0,   1e-30, -1e-7, 1e-3, 0.3,  -0.34, 0.35,     -1,        4.5,
                                       9.1, -20,   60,    -90,  1e30, -1e30, INFINITY, -INFINITY, NAN};
  for (int64_t activation : {kMyccSigmoid, kMyccTanh}) {
    RecurrentCase k = MakeCase(DType::kF32, kMyccRnn, 1, numbers.size(), 0, 0, activation);
    k.weights = NDArray::Zeros(DType::kF32, k.weights.shape);
    for (int64_t i = 0; i < k.products.num_elements(); ++i)
      k.products.Set(i, Scalar{numbers[i % numbers.size()]});
    const int64_t hidden = k.hidden;
    // The first step: later ones multiply the NaN.
    const NDArray y =
        CallKernel("recurrent", k.attributes, {k.products, Panels(k.weights)},
                   {{DType::kF32, {kSteps, 1, k.batch, hidden}}, {DType::kF32, {1, k.batch, hidden}}})[0];
    for (int64_t j = 0; j < hidden; ++j) {
      const double expected = ActivationAt(k, 0, 0, static_cast<float>(numbers[j])), got = y.Get(j).f;
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        EXPECT_NEAR(got, expected, 4e-7 * std::abs(expected) + 1e-37) << numbers[j];
      }
    }
  }
}

}  // namespace
}  // namespace mycc
