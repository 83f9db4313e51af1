// Programs, run launch by launch over one block of memory, give what the graph gives.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

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

// A kernel of its own: its result is read by a library call, which gives the next tensor.
Buffer CopiedBehind(GraphBuilder* b, const Buffer& x) {
  return b->Call("copy", {}, {x}, {{x->dtype, x->shape}})[0];
}

// Whether the first kernel writes its result in the place of an input.
bool Overwrites(const ModelProgram& program) {
  for (const KernelLaunch& launch : program.launches) {
    if (launch.kernel < 0) continue;
    const TensorPlace& result = launch.places.back();
    EXPECT_EQ(result.kind, TensorPlace::kArena);
    return std::any_of(launch.places.begin(), launch.places.end() - 1, [&](const TensorPlace& place) {
      return place.kind == result.kind && place.at == result.at;
    });
  }
  ADD_FAILURE() << "no kernel";
  return false;
}

// The program of a kernel that reads `shape` numbers, for which nothing else has a use. `add` adds the
// kernel.
ModelProgram ProgramAround(std::vector<int64_t> shape,
                           const std::function<Buffer(GraphBuilder* b, const Buffer& x)>& add) {
  GraphBuilder b("net");
  const Buffer x = CopiedBehind(&b, b.AddInput("x", DType::kF32, std::move(shape)));
  b.AddOutput("y", CopiedBehind(&b, add(&b, x)));
  EXPECT_TRUE(b.status().ok()) << b.status();
  return ProgramOf(b.Finish());
}

TEST(OverwriteTest, ElementwiseKernelsOverwriteAnInputThatNobodyReadsLater) {
  const ModelProgram chain = ProgramAround(
      {16, 8}, [](GraphBuilder* b, const Buffer& x) { return Unary(b, Op::kTanh, Unary(b, Op::kExp, x)); });
  EXPECT_TRUE(Overwrites(chain));
  EXPECT_EQ(chain.arena_bytes, 512);
  EXPECT_EQ(chain.tensor_bytes, 1024);
  EXPECT_TRUE(Overwrites(ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) {
    return Sum(b, x, b->AddInput("other", DType::kF32, {16, 8}));
  })));
  // The second input is the one that is free.
  EXPECT_TRUE(Overwrites(ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) {
    return Sum(b, b->AddInput("other", DType::kF32, {16, 8}), BiasAndRelu(b, x, 1));
  })));
}

TEST(OverwriteTest, InputsThatAreReadLaterStay) {
  GraphBuilder b("net");
  const Buffer x = CopiedBehind(&b, b.AddInput("x", DType::kF32, {16, 8}));
  const Buffer y = CopiedBehind(&b, Unary(&b, Op::kExp, x));
  b.AddOutput("y", Sum(&b, x, y));
  EXPECT_FALSE(Overwrites(ProgramOf(b.Finish())));
}

TEST(OverwriteTest, InputsThatAreReadLaterInAnotherShapeStay) {
  GraphBuilder b("net");
  const Buffer x = CopiedBehind(&b, b.AddInput("x", DType::kF32, {16, 8}));
  const Buffer y = CopiedBehind(&b, Unary(&b, Op::kExp, x));
  b.AddOutput("x", CopiedBehind(&b, b.AddReshape(x, {128})));
  b.AddOutput("y", y);
  EXPECT_FALSE(Overwrites(ProgramOf(b.Finish())));
}

TEST(OverwriteTest, PartsOfLargerTensorsStay) {
  EXPECT_FALSE(Overwrites(ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) {
    const Buffer part = MakeBuffer("part", DType::kF32, {8, 8});
    b->AddNode({{part}, Reshape{x, 64}, {}});
    return Unary(b, Op::kExp, part);
  })));
}

TEST(OverwriteTest, OtherTypesStay) {
  EXPECT_FALSE(Overwrites(
      ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) { return b->Cast(x, DType::kI32); })));
  EXPECT_FALSE(Overwrites(
      ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) { return b->Cast(x, DType::kF16); })));
}

TEST(OverwriteTest, InputsThatOtherElementsNeedStay) {
  EXPECT_FALSE(Overwrites(ProgramAround({8, 8}, [](GraphBuilder* b, const Buffer& x) {
    return Sum(b, x, Transposed(b, x, {1, 0}));
  })));
  // Each element reads the first one, and the kernel's result has one dimension.
  EXPECT_FALSE(Overwrites(ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) {
    const Buffer other = b->AddInput("other", DType::kF32, {16, 8});
    return b->Map({16, 8}, [&](const Axes& a) {
      return Load(other, a) + Load(x, {IntConst(0), IntConst(0)});
    });
  })));
  // The same memory is read under another shape, as a row.
  EXPECT_FALSE(Overwrites(ProgramAround({1, 8}, [](GraphBuilder* b, const Buffer& x) {
    const Buffer row = b->AddReshape(x, {8});
    return b->Map({1, 8}, [&](const Axes& a) { return Load(x, a) + Load(row, {IntConst(7) - a[1]}); });
  })));
  EXPECT_FALSE(
      Overwrites(ProgramAround({16, 8}, [](GraphBuilder* b, const Buffer& x) { return Product(b, x, 8); })));
}

// x[4,6] times a matrix of [6,8], which the seed decides.
Buffer ProductWith(GraphBuilder* b, const Buffer& x, int seed) {
  const Buffer weights = Weights(b, {6, 8}, seed);
  return b->Reduce(ReduceOp::kSum, {4, 8}, {6}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0]}) * Load(weights, {r[0], a[1]});
  });
}

ModelProgram OptimizedProgramOf(const Graph& graph) {
  const auto optimized = OptimizeGraph(graph, Target());
  EXPECT_TRUE(optimized.ok()) << optimized.status();
  return ProgramOf(*optimized);
}

TEST(MakeProgramTest, PartsOfAMergedProductLieBehindOneAnother) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  for (int i = 0; i < 3; ++i) b.AddOutput(std::to_string(i), CopiedBehind(&b, ProductWith(&b, x, i)));
  const ModelProgram program = OptimizedProgramOf(b.Finish());
  ASSERT_EQ(program.launches.size(), 4);  // the product, and three copies
  EXPECT_EQ(program.arena_bytes, 3 * 128);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(program.launches[i].places[0].kind, TensorPlace::kArena);
    EXPECT_EQ(program.launches[i].places[0].at, static_cast<int64_t>(i - 1) * 128);
  }
}

TEST(MakeProgramTest, ProductsThatAreOutputsInAnotherShape) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  b.AddOutput("0", b.AddReshape(ProductWith(&b, x, 0), {2, 16}));
  b.AddOutput("1", b.AddReshape(ProductWith(&b, x, 1), {32}));
  b.AddOutput("2", CopiedBehind(&b, ProductWith(&b, x, 2)));
  b.AddOutput("3", CopiedBehind(&b, ProductWith(&b, x, 3)));
  EXPECT_EQ(OptimizedProgramOf(b.Finish()).launches.size(), 5);
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
