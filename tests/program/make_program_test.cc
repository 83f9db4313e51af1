// Programs, run launch by launch over one block of memory, give what the graph gives.
#include <gmock/gmock.h>

#include "codegen/graph/optimize.h"
#include "codegen/program/digest.h"
#include "codegen/program/program.h"
#include "tests/graph/graph_cases.h"
#include "tests/graph/random_graph.h"
#include "tests/program/program_run.h"

namespace mycc {
namespace {

ModelProgram ProgramOf(const Graph& graph) {
  ModelProgram program = MakeProgram(graph);
  for (const Workload& kernel : program.kernels) EXPECT_TRUE(Validate(kernel).ok()) << Validate(kernel);
  ExpectComputes(program, graph);
  return program;
}

TEST(MakeProgramTest, EqualKernelsAreOne) {
  GraphBuilder b("net");
  Buffer x = b.AddInput("x", DType::kF32, {4, 4});
  for (int i = 0; i < 3; ++i) {
    b.SetOrigins({"MatMul m" + std::to_string(i), "Add a", "Relu r", "Other o"});
    x = BiasAndRelu(&b, Product(&b, x, 4), 1);
  }
  b.AddOutput("y", x);
  const ModelProgram program = ProgramOf(b.Finish());
  EXPECT_EQ(program.name, "net");
  ASSERT_EQ(program.kernels.size(), 1);
  EXPECT_EQ(program.kernels[0].name, "k0_matmul_add_relu");
  EXPECT_EQ(program.kernels[0].count, 3);
  EXPECT_EQ(program.launches.size(), 3);
  EXPECT_THAT(program.launches[2].origins, testing::ElementsAre("MatMul m2", "Add a", "Relu r", "Other o"));
  EXPECT_EQ(program.launches[2].places.back().kind, TensorPlace::kOutput);
  EXPECT_EQ(program.arena_bytes, 128);
  EXPECT_EQ(program.tensor_bytes, 128);
  // Weights are constants of the workload.
  EXPECT_FALSE(program.kernels[0].inputs[0].is_const);
  EXPECT_TRUE(program.kernels[0].inputs[1].is_const);
}

TEST(MakeProgramTest, OutputsThatNoKernelWritesAreCopied) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3});
  const Buffer y = Unary(&b, Op::kExp, x);
  b.AddOutput("an input", x);
  b.AddOutput("an input in another shape", b.AddReshape(x, {6}));
  b.AddOutput("a constant", Weights(&b, {4}));
  b.AddOutput("y", y);
  b.AddOutput("y again", y);
  b.AddOutput("y in another shape", b.AddReshape(y, {3, 2}));
  const ModelProgram program = ProgramOf(b.Finish());
  EXPECT_EQ(program.launches.size(), 6);
  EXPECT_EQ(program.arena_bytes, 0);
}

TEST(MakeProgramTest, ScalarsAndTensorsWithoutElements) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {}), none = b.AddInput("none", DType::kF32, {0, 3});
  b.AddOutput("y", Unary(&b, Op::kExp, x));
  b.AddOutput("none", Unary(&b, Op::kExp, none));
  b.AddOutput("sum", b.Reduce(ReduceOp::kSum, {3}, {0}, [&](const Axes& a, const Axes& r) {
    return Load(none, {r[0], a[0]});
  }));
  EXPECT_TRUE(b.status().ok()) << b.status();
  ProgramOf(b.Finish());
}

TEST(MakeProgramTest, TheDigestSeesWeightsNamesAndShapes) {
  const auto digest = [](const char* input, int64_t rows, int seed) {
    GraphBuilder b("net");
    const Buffer x = b.AddInput(input, DType::kF32, {rows});
    b.AddOutput("y", Sum(&b, x, Weights(&b, {rows}, seed)));
    return ProgramDigest(MakeProgram(b.Finish()));
  };
  EXPECT_EQ(digest("x", 4, 1), digest("x", 4, 1));
  EXPECT_NE(digest("x", 4, 1), digest("x", 4, 2));
  EXPECT_NE(digest("x", 4, 1), digest("z", 4, 1));
  EXPECT_NE(digest("x", 4, 1), digest("x", 5, 1));
}

TEST(MakeProgramTest, RandomGraphs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    ProgramOf(graph);
    const auto optimized = OptimizeGraph(graph, Target());
    ASSERT_TRUE(optimized.ok()) << optimized.status();
    ProgramOf(*optimized);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mycc
