// Programs, run launch by launch over one block of memory, give what the graph gives.
#include <gmock/gmock.h>

#include <cstring>

#include "codegen/graph/interpret.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/graph/optimize.h"
#include "codegen/program/digest.h"
#include "codegen/program/program.h"
#include "tests/graph/graph_cases.h"
#include "tests/graph/random_graph.h"

namespace mycc {
namespace {

// Runs a program as its library does, with the reference in place of compiled kernels.
class ProgramRun {
 public:
  ProgramRun(const ModelProgram& program, std::vector<NDArray> inputs)
      : program_(program), inputs_(std::move(inputs)), arena_(program.arena_bytes, 0xa5) {
    for (const NamedTensor& output : program.outputs)
      outputs_.push_back(NDArray::Zeros(output.tensor->dtype, output.tensor->shape));
  }

  std::vector<NDArray> Run() {
    for (const KernelLaunch& launch : program_.launches) Launch(launch);
    return outputs_;
  }

 private:
  void Launch(const KernelLaunch& launch) {
    ASSERT_EQ(launch.places.size(), launch.tensors.size());
    const size_t num_inputs = launch.tensors.size() - launch.num_outputs;
    std::vector<NDArray> values;
    for (size_t i = 0; i < num_inputs; ++i) {
      // A kernel may take the tensor in another shape, with the same bytes.
      const Buffer& tensor =
          launch.kernel < 0 ? launch.tensors[i] : program_.kernels[launch.kernel].inputs[i].tensor;
      values.push_back(NDArray::Zeros(tensor->dtype, tensor->shape));
      std::memcpy(values.back().bytes.data(), At(launch.places[i], values.back().bytes.size()),
                  values.back().bytes.size());
    }
    const std::vector<Buffer> outputs(launch.tensors.begin() + num_inputs, launch.tensors.end());
    std::vector<const NDArray*> arguments;
    for (const NDArray& value : values) arguments.push_back(&value);
    const auto results = launch.kernel < 0 ? RunLibraryCall(launch.call, outputs, arguments)
                                           : RunReference(program_.kernels[launch.kernel], values);
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; i < results->size(); ++i) {
      const std::vector<uint8_t>& bytes = (*results)[i].bytes;
      std::memcpy(At(launch.places[num_inputs + i], bytes.size()), bytes.data(), bytes.size());
    }
  }

  uint8_t* At(const TensorPlace& place, size_t size) {
    std::vector<uint8_t>* bytes = &arena_;
    if (place.kind == TensorPlace::kInput) bytes = &inputs_[place.at].bytes;
    if (place.kind == TensorPlace::kOutput) bytes = &outputs_[place.at].bytes;
    if (place.kind == TensorPlace::kConstant)
      return const_cast<uint8_t*>(program_.constants[place.at]->bytes.data());
    const int64_t offset = place.kind == TensorPlace::kArena ? place.at : 0;
    EXPECT_LE(offset + size, bytes->size());
    return bytes->data() + offset;
  }

  const ModelProgram& program_;
  std::vector<NDArray> inputs_, outputs_;
  std::vector<uint8_t> arena_;
};

void ExpectComputes(const ModelProgram& program, const Graph& graph) {
  const std::vector<NDArray> inputs = RandomValues(graph, 1);
  const auto expected = InterpretGraph(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::vector<NDArray> got = ProgramRun(program, inputs).Run();
  ASSERT_EQ(got.size(), expected->size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i].bytes == (*expected)[i].bytes) << graph.outputs[i].name << "\n" << PrintGraph(graph);
}

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
