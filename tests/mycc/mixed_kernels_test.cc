// The kernels of graphs in mixed precision: that products use the target's instructions for narrow types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/driver/compile.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/optimize.h"
#include "codegen/program/program.h"
#include "mycc/finder.h"
#include "mycc/precision_check.h"

namespace mycc {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

Buffer Weights(GraphBuilder* g, std::vector<int64_t> shape) {
  return g->AddConstant(NDArray::Zeros(DType::kF32, std::move(shape)));
}

// relu(x w0) w1.
Graph Perceptron() {
  GraphBuilder g("perceptron");
  const Buffer x = g.AddInput("x", DType::kF32, {16, 64}), w = Weights(&g, {64, 96}),
               v = Weights(&g, {96, 32});
  const Buffer y = g.Reduce(ReduceOp::kSum, {16, 96}, {64}, [&](const Axes& at, const Axes& k) {
    return Load(x, {at[0], k[0]}) * Load(w, {k[0], at[1]});
  });
  const Buffer positive = g.Map(y->shape, [&](const Axes& at) {
    return MakeBinary(Op::kMax, Load(y, at), FloatConst(0, DType::kF32));
  });
  g.AddOutput("z", g.Reduce(ReduceOp::kSum, {16, 32}, {96}, [&](const Axes& at, const Axes& k) {
    return Load(positive, {at[0], k[0]}) * Load(v, {k[0], at[1]});
  }));
  return g.Finish();
}

// A convolution of stride 2 of a padded image, channels first, with few channels.
Graph FirstLayer() {
  GraphBuilder g("first");
  const Buffer x = g.AddInput("x", DType::kF32, {1, 3, 16, 16}), w = Weights(&g, {32, 3, 3, 3});
  const auto inside = [](const Expr& i) {
    return MakeBinary(Op::kAnd, MakeBinary(Op::kLe, IntConst(1), i), MakeBinary(Op::kLt, i, IntConst(17)));
  };
  const Buffer padded = g.Map({1, 3, 18, 18}, [&](const Axes& at) {
    return MakeSelect(MakeBinary(Op::kAnd, inside(at[2]), inside(at[3])),
                      Load(x, {at[0], at[1], at[2] - 1, at[3] - 1}), FloatConst(0, DType::kF32));
  });
  const Buffer y = g.Reduce(ReduceOp::kSum, {1, 32, 8, 8}, {3, 3, 3}, [&](const Axes& at, const Axes& k) {
    return Load(padded, {at[0], k[0], at[2] * 2 + k[1], at[3] * 2 + k[2]}) *
           Load(w, {at[1], k[0], k[1], k[2]});
  });
  g.AddOutput("y", g.Map(y->shape, [&](const Axes& at) {
    return MakeBinary(Op::kMax, Load(y, at), FloatConst(0, DType::kF32));
  }));
  return g.Finish();
}

// The assembly of each kernel with a product.
std::vector<std::string> Products(const Graph& graph, const std::string& target_text, DType narrow) {
  const Target target = *ParseTarget(target_text);
  const ModelProgram program = MakeProgram(*OptimizeGraph(graph, target, {narrow}));
  const ScheduleFinder finder(nullptr, target);
  std::vector<std::string> codes;
  for (const Workload& workload : program.kernels) {
    bool is_product = false;
    for (const Stage& stage : workload.stages) is_product |= stage.reduce == ReduceOp::kSum;
    if (is_product) codes.push_back(*EmitText(finder.Find(workload)->kernel, target, "asm"));
  }
  return codes;
}

TEST(MixedKernelsTest, ProductsUseTheInstructionsOfTheTarget) {
  const std::string avx512 = "v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2";
  const std::vector<std::string> products = Products(Perceptron(), avx512, DType::kBF16);
  EXPECT_EQ(products.size(), 2);
  EXPECT_THAT(products, Each(HasSubstr("vdpbf16ps")));
  EXPECT_THAT(Products(Perceptron(), avx512, DType::kF16), Each(HasSubstr("vcvtph2ps")));
  EXPECT_THAT(Products(Perceptron(), "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2", DType::kBF16),
              Each(HasSubstr("vfmadd")));
  EXPECT_THAT(Products(FirstLayer(), avx512, DType::kBF16), Each(HasSubstr("vdpbf16ps")));
}

HostTensor Tensor(DType dtype, const std::vector<double>& values) {
  HostTensor tensor = *HostTensor::Create(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    StoreScalar(dtype, tensor.data() + i * DTypeBytes(dtype),
                IsFloat(dtype) ? Scalar{values[i], 0} : Scalar{0, static_cast<int64_t>(values[i])});
  return tensor;
}

TEST(PrecisionCheckTest, DeviationsAreRelativeToTheLargestElement) {
  const Deviation deviation =
      DeviationOf("y", Tensor(DType::kF32, {1.5, -8, 0.25}), Tensor(DType::kF32, {1, -8, 0}));
  EXPECT_EQ(deviation.max_abs_error, 0.5);
  EXPECT_EQ(deviation.largest_magnitude, 8);
  EXPECT_EQ(deviation.max_rel_error(), 0.0625);
  EXPECT_EQ(deviation.not_finite, 0);
}

TEST(PrecisionCheckTest, OverflowIsCounted) {
  const double infinity = INFINITY;
  const Deviation deviation =
      DeviationOf("y", Tensor(DType::kF32, {infinity, NAN, infinity, NAN, 2, -infinity}),
                  Tensor(DType::kF32, {70000, NAN, infinity, 1, 2, infinity}));
  EXPECT_EQ(deviation.not_finite, 3);
  EXPECT_EQ(deviation.max_abs_error, 0);
}

TEST(PrecisionCheckTest, IntegersAndZerosHaveDeviationsToo) {
  EXPECT_EQ(DeviationOf("y", Tensor(DType::kI32, {3, 4}), Tensor(DType::kI32, {3, 8})).max_rel_error(), 0.5);
  EXPECT_EQ(DeviationOf("y", Tensor(DType::kF32, {0.5}), Tensor(DType::kF32, {0})).max_rel_error(), 0.5);
}

TEST(PrecisionCheckTest, TheTableNamesEachOutput) {
  EXPECT_EQ(DeviationTable({{"y", 8, 0.5, 0}, {"logits", 0, 0, 2}}),
            "output  largest in f32  largest deviation  relative to the largest  no longer finite\n"
            "------  --------------  -----------------  -----------------------  ----------------\n"
            "y                    8                0.5                   0.0625                 0\n"
            "logits               0                  0                        0                 2\n");
}

}  // namespace
}  // namespace mycc
