// The mixed-precision pass: what becomes narrow, what stays in f32, and how far results move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "codegen/graph/builder.h"
#include "codegen/graph/interpret.h"
#include "codegen/graph/optimize.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

NDArray RandomArray(const std::vector<int64_t>& shape, uint32_t seed, double scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  NDArray array = NDArray::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, Scalar{uniform(random), 0});
  return array;
}

Target Host() { return *ParseTarget("v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2"); }

Graph Mixed(const Graph& graph, DType narrow) {
  const absl::StatusOr<Graph> mixed = OptimizeGraph(graph, Host(), {narrow});
  EXPECT_TRUE(mixed.ok()) << mixed.status();
  return mixed.ok() ? *mixed : graph;
}

Graph Plain(const Graph& graph) { return *OptimizeGraph(graph, Host()); }

// The largest deviation of any output, relative to that output's largest magnitude.
double DeviationOnRandomInputs(const Graph& graph, DType narrow) {
  std::vector<NDArray> inputs;
  for (const NamedTensor& input : graph.inputs)
    inputs.push_back(RandomArray(input.tensor->shape, static_cast<uint32_t>(inputs.size())));
  const auto expected = InterpretGraph(Plain(graph), inputs),
             got = InterpretGraph(Mixed(graph, narrow), inputs);
  EXPECT_TRUE(expected.ok() && got.ok()) << expected.status() << got.status();
  if (!expected.ok() || !got.ok()) return kInfinity;
  double worst = 0;
  for (size_t o = 0; o < expected->size(); ++o) {
    const NDArray &a = (*expected)[o], &b = (*got)[o];
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(a.shape, b.shape);
    double largest = 0, error = 0;
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      largest = std::max(largest, std::abs(a.Get(i).f));
      error = std::max(error, std::abs(a.Get(i).f - b.Get(i).f));
    }
    worst = std::max(worst, error / largest);
  }
  return worst;
}

Buffer MatMul(GraphBuilder* g, const Buffer& a, const Buffer& b) {
  return g->Reduce(ReduceOp::kSum, {a->shape[0], b->shape[1]}, {a->shape[1]},
                   [&](const Axes& at, const Axes& k) {
                     return Load(a, {at[0], k[0]}) * Load(b, {k[0], at[1]});
                   });
}

Buffer Relu(GraphBuilder* g, const Buffer& x) {
  return g->Map(x->shape,
                [&](const Axes& at) { return MakeBinary(Op::kMax, Load(x, at), FloatConst(0, x->dtype)); });
}

Buffer Softmax(GraphBuilder* g, const Buffer& x) {
  const std::vector<int64_t> rows = {x->shape[0]}, row = {x->shape[1]};
  const auto at_row = [&](const Axes& at, const Axes& k) { return Load(x, {at[0], k[0]}); };
  const Buffer most = g->Reduce(ReduceOp::kMax, rows, row, at_row);
  const Buffer powers = g->Map(
      x->shape, [&](const Axes& at) { return MakeUnary(Op::kExp, Load(x, at) - Load(most, {at[0]})); });
  const Buffer sum = g->Reduce(ReduceOp::kSum, rows, row, [&](const Axes& at, const Axes& k) {
    return Load(powers, {at[0], k[0]});
  });
  return g->Map(x->shape,
                [&](const Axes& at) { return MakeBinary(Op::kDiv, Load(powers, at), Load(sum, {at[0]})); });
}

Buffer LayerNorm(GraphBuilder* g, const Buffer& x) {
  const std::vector<int64_t> rows = {x->shape[0]}, row = {x->shape[1]};
  const Expr part = FloatConst(1.0 / static_cast<double>(x->shape[1]), DType::kF32);
  const Buffer sum = g->Reduce(ReduceOp::kSum, rows, row, [&](const Axes& at, const Axes& k) {
    return Load(x, {at[0], k[0]});
  });
  const Buffer centred =
      g->Map(x->shape, [&](const Axes& at) { return Load(x, at) - Load(sum, {at[0]}) * part; });
  const Buffer squares = g->Reduce(ReduceOp::kSum, rows, row, [&](const Axes& at, const Axes& k) {
    return Load(centred, {at[0], k[0]}) * Load(centred, {at[0], k[0]});
  });
  return g->Map(x->shape, [&](const Axes& at) {
    const Expr variance = Load(squares, {at[0]}) * part + FloatConst(1e-5, DType::kF32);
    return Load(centred, at) * MakeUnary(Op::kRsqrt, variance);
  });
}

// Two layers: x w0 + b, relu, w1.
Graph Perceptron(double scale = 0.1) {
  GraphBuilder g("perceptron");
  const Buffer x = g.AddInput("x", DType::kF32, {8, 48});
  const Buffer bias = g.AddConstant(RandomArray({64}, 12));
  Buffer y = MatMul(&g, x, g.AddConstant(RandomArray({48, 64}, 10, scale)));
  y = Relu(&g, g.Map(y->shape, [&](const Axes& at) { return Load(y, at) + Load(bias, {at[1]}); }));
  g.AddOutput("y", MatMul(&g, y, g.AddConstant(RandomArray({64, 16}, 11))));
  return g.Finish();
}

// softmax(norm(x) w0) w1: scores are arguments of exp, and x goes into means.
Graph AttentionLike() {
  GraphBuilder g("attention");
  const Buffer x = g.AddInput("x", DType::kF32, {8, 32});
  const Buffer grown = MatMul(&g, x, g.AddConstant(RandomArray({32, 32}, 9)));
  const Buffer scores = MatMul(&g, LayerNorm(&g, grown), g.AddConstant(RandomArray({32, 64}, 10)));
  g.AddOutput("y", MatMul(&g, Softmax(&g, scores), g.AddConstant(RandomArray({64, 32}, 11))));
  return g.Finish();
}

// An image: convolution, relu, max pooling, padding before both; convolution of stride 1; average.
Buffer Padded(GraphBuilder* g, const Buffer& x, double outside) {
  const int64_t rows = x->shape[2], columns = x->shape[3];
  const auto inside = [](const Expr& i, int64_t extent) {
    return MakeBinary(Op::kAnd, MakeBinary(Op::kLe, IntConst(1), i),
                      MakeBinary(Op::kLt, i, IntConst(extent + 1)));
  };
  return g->Map({x->shape[0], x->shape[1], rows + 2, columns + 2}, [&](const Axes& at) {
    return MakeSelect(MakeBinary(Op::kAnd, inside(at[2], rows), inside(at[3], columns)),
                      Load(x, {at[0], at[1], at[2] - 1, at[3] - 1}), FloatConst(outside, DType::kF32));
  });
}

Buffer Convolution(GraphBuilder* g, const Buffer& x, int64_t channels, uint32_t seed) {
  const Buffer w = g->AddConstant(RandomArray({channels, x->shape[1], 3, 3}, seed, 0.2));
  const Buffer padded = Padded(g, x, 0);
  return g->Reduce(
      ReduceOp::kSum, {1, channels, x->shape[2], x->shape[3]}, {x->shape[1], 3, 3},
      [&](const Axes& at, const Axes& k) {
        return Load(padded, {at[0], k[0], at[2] + k[1], at[3] + k[2]}) * Load(w, {at[1], k[0], k[1], k[2]});
      });
}

Graph ImageLike() {
  GraphBuilder g("image");
  const Buffer x = g.AddInput("x", DType::kF32, {1, 3, 16, 16});
  const Buffer first = Relu(&g, Convolution(&g, x, 16, 1));
  const Buffer padded = Padded(&g, first, -kInfinity);
  const Buffer pooled = g.Reduce(ReduceOp::kMax, {1, 16, 8, 8}, {3, 3}, [&](const Axes& at, const Axes& k) {
    return Load(padded, {at[0], at[1], at[2] * 2 + k[0], at[3] * 2 + k[1]});
  });
  const Buffer second = Relu(&g, Convolution(&g, pooled, 32, 2));
  g.AddOutput("y", g.Reduce(ReduceOp::kSum, {1, 32}, {8, 8}, [&](const Axes& at, const Axes& k) {
    return Load(second, {at[0], at[1], k[0], k[1]});
  }));
  return g.Finish();
}

TEST(MixedPrecisionTest, ProductsTakeNarrowOperandsAndSumInF32) {
  EXPECT_TRUE(MatchesGolden("graph/mixed_perceptron", PrintGraph(Mixed(Perceptron(), DType::kBF16))));
  EXPECT_LT(DeviationOnRandomInputs(Perceptron(), DType::kBF16), 2e-2);
  EXPECT_LT(DeviationOnRandomInputs(Perceptron(), DType::kF16), 2e-3);
  EXPECT_GT(DeviationOnRandomInputs(Perceptron(), DType::kBF16), 0);
}

TEST(MixedPrecisionTest, MeansAndArgumentsOfExpStayInF32) {
  EXPECT_TRUE(MatchesGolden("graph/mixed_attention", PrintGraph(Mixed(AttentionLike(), DType::kF16))));
  EXPECT_LT(DeviationOnRandomInputs(AttentionLike(), DType::kF16), 5e-3);
  EXPECT_LT(DeviationOnRandomInputs(AttentionLike(), DType::kBF16), 4e-2);
}

TEST(MixedPrecisionTest, PaddingMovesNarrowElements) {
  EXPECT_TRUE(MatchesGolden("graph/mixed_image", PrintGraph(Mixed(ImageLike(), DType::kBF16))));
  EXPECT_LT(DeviationOnRandomInputs(ImageLike(), DType::kBF16), 2e-2);
}

TEST(MixedPrecisionTest, NothingChangesWithoutIt) {
  EXPECT_THAT(PrintGraph(Plain(Perceptron())), Not(HasSubstr("f16")));
}

TEST(MixedPrecisionTest, WeightsBeyondTheRangeStayInF32) {
  const Graph graph = Perceptron(1e6);
  EXPECT_THAT(PrintGraph(Mixed(graph, DType::kF16)), HasSubstr("f32[8,64] = sum[r0:48](v0[a0,r0] * "));
  EXPECT_THAT(PrintGraph(Mixed(graph, DType::kBF16)),
              HasSubstr("f32[8,64] = sum[r0:48](f32(v0_bf16[a0,r0]) * "));
}

// A graph of a product whose first operand is `value` of x and of a mask that x[i,j] < 0 gives.
Graph MaskedProduct(double masked) {
  GraphBuilder g("masked");
  const Buffer x = g.AddInput("x", DType::kF32, {8, 48}), z = g.AddInput("z", DType::kF32, {8, 48});
  const Buffer y = g.Map(x->shape, [&](const Axes& at) {
    return MakeSelect(MakeBinary(Op::kLt, Load(z, at), FloatConst(0, DType::kF32)), Load(x, at) + Load(z, at),
                      FloatConst(masked, DType::kF32));
  });
  g.AddOutput("y", MatMul(&g, y, g.AddConstant(RandomArray({48, 16}, 11))));
  return g.Finish();
}

TEST(MixedPrecisionTest, LargeMasksStayInF32) {
  EXPECT_THAT(PrintGraph(Mixed(MaskedProduct(-1e9), DType::kF16)), Not(HasSubstr("f16")));
  EXPECT_THAT(PrintGraph(Mixed(MaskedProduct(-3.4028234e38), DType::kBF16)), Not(HasSubstr("bf16")));
  EXPECT_THAT(PrintGraph(Mixed(MaskedProduct(0), DType::kF16)), HasSubstr("f16"));
}

TEST(MixedPrecisionTest, ProductsOfWeightsAloneStayInF32) {
  GraphBuilder g("weights");
  const Buffer x = g.AddInput("x", DType::kF32, {8, 256});
  // More terms than the builder computes at once.
  const Buffer w =
      MatMul(&g, g.AddConstant(RandomArray({256, 256}, 1)), g.AddConstant(RandomArray({256, 96}, 2)));
  g.AddOutput("y", MatMul(&g, x, w));
  const std::string text = PrintGraph(Mixed(g.Finish(), DType::kBF16));
  EXPECT_THAT(text, HasSubstr("f32[256,96] = sum[r0:256](v"));
  EXPECT_THAT(text, HasSubstr("bf16[256,96] = bf16(v"));
  EXPECT_THAT(text, HasSubstr("f32[8,96] = sum[r0:256](f32(v"));
}

TEST(MixedPrecisionTest, ANarrowModelStays) {
  GraphBuilder g("narrow");
  const Buffer x = g.AddInput("x", DType::kF16, {8, 48}), w = g.AddInput("w", DType::kF16, {48, 16});
  g.AddOutput("y", Relu(&g, MatMul(&g, x, w)));
  const Graph graph = g.Finish();
  EXPECT_EQ(PrintGraph(Mixed(graph, DType::kF16)), PrintGraph(Plain(graph)));
  EXPECT_EQ(PrintGraph(Mixed(graph, DType::kBF16)), PrintGraph(Plain(graph)));
}

// relu(x) w0 is read by `reader` alone, in another kernel.
template <typename Reader>
std::string PrintedWithReader(const Reader& reader) {
  GraphBuilder g("reader");
  const Buffer x = g.AddInput("x", DType::kF32, {64, 48});
  const Buffer y = Relu(&g, MatMul(&g, x, g.AddConstant(RandomArray({48, 64}, 10))));
  const Buffer read = reader(&g, y);
  g.AddOutput("y", read);
  return PrintGraph(Mixed(g.Finish(), DType::kBF16));
}

constexpr const char* kStoredNarrow = "_bf16[a0,a1]: bf16[64,64] = bf16(max(";

TEST(MixedPrecisionTest, SafeReadersLetATensorBeStoredNarrow) {
  // A larger tensor, in a kernel of its own.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Map({3, 64, 64}, [&](const Axes& at) {
                  return Load(y, {at[1], at[2]}) * FloatConst(2, DType::kF32);
                });
              }),
              HasSubstr(kStoredNarrow));
  // The largest of each window.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Reduce(ReduceOp::kMax, {32, 64}, {2}, [&](const Axes& at, const Axes& k) {
                  return Load(y, {at[0] * 2 + k[0], at[1]});
                });
              }),
              HasSubstr(kStoredNarrow));
  // The average of few elements.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Reduce(ReduceOp::kSum, {32, 64}, {2}, [&](const Axes& at, const Axes& k) {
                  return Load(y, {at[0] * 2 + k[0], at[1]});
                });
              }),
              HasSubstr(kStoredNarrow));
  // An activation with a threshold.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Map({3, 64, 64}, [&](const Axes& at) {
                  const Expr value = Load(y, {at[1], at[2]});
                  return MakeSelect(MakeBinary(Op::kLt, value, FloatConst(1, DType::kF32)),
                                    value * FloatConst(2, DType::kF32), FloatConst(1, DType::kF32));
                });
              }),
              HasSubstr(kStoredNarrow));
}

TEST(MixedPrecisionTest, SensitiveReadersKeepATensorInF32) {
  // A sum of many elements.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Reduce(ReduceOp::kSum, {64}, {64}, [&](const Axes& at, const Axes& k) {
                  return Load(y, {k[0], at[0]});
                });
              }),
              Not(HasSubstr(kStoredNarrow)));
  // An index.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Reduce(ReduceOp::kArgMax, {64}, {64}, [&](const Axes& at, const Axes& k) {
                  return Load(y, {at[0], k[0]});
                });
              }),
              Not(HasSubstr(kStoredNarrow)));
  // An argument of exp, scaled before.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                const Buffer scaled = g->Map({3, 64, 64}, [&](const Axes& at) {
                  return Load(y, {at[1], at[2]}) * FloatConst(2, DType::kF32);
                });
                return g->Map(scaled->shape,
                              [&](const Axes& at) { return MakeUnary(Op::kExp, Load(scaled, at)); });
              }),
              Not(HasSubstr(kStoredNarrow)));
  // The order of two elements.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Map({3, 64, 64}, [&](const Axes& at) {
                  return MakeBinary(Op::kLt, Load(y, {at[1], at[2]}), Load(y, {at[2], at[1]}));
                });
              }),
              Not(HasSubstr(kStoredNarrow)));
  // An output of the model, through a transpose.
  EXPECT_THAT(PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
                return g->Map(y->shape, [&](const Axes& at) { return Load(y, {at[1], at[0]}); });
              }),
              Not(HasSubstr(kStoredNarrow)));
}

TEST(MixedPrecisionTest, ASensitiveTensorHasANarrowCopyForProducts) {
  const std::string text = PrintedWithReader([](GraphBuilder* g, const Buffer& y) {
    const Buffer sums = g->Reduce(ReduceOp::kSum, {64}, {64}, [&](const Axes& at, const Axes& k) {
      return Load(y, {k[0], at[0]});
    });
    const Buffer product = MatMul(g, y, g->AddConstant(RandomArray({64, 16}, 3)));
    g->AddOutput("sums", sums);
    return product;
  });
  EXPECT_THAT(text, Not(HasSubstr(kStoredNarrow)));
  EXPECT_THAT(text, HasSubstr(": bf16[64,64] = bf16(v"));
  EXPECT_THAT(text, HasSubstr(": f32[64] = sum[r0:64](v"));
}

}  // namespace
}  // namespace mycc
