// Other cuts of a program's kernels: which there are, that they compute the same, and that names choose them.
#include <gmock/gmock.h>

#include <set>

#include "codegen/program/digest.h"
#include "codegen/program/partition.h"
#include "codegen/program/program.h"
#include "codegen/program/regroupings.h"
#include "codegen/workload/canonical.h"
#include "tests/graph/graph_cases.h"
#include "tests/graph/random_graph.h"
#include "tests/program/program_run.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const std::vector<Workload>& workloads) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads) names.push_back(workload.name);
  return names;
}

std::string KindOf(const Alternative& alternative) {
  return alternative.name.substr(alternative.name.find(':') + 1);
}

std::vector<std::string> KindsOf(const ModelProgram& program) {
  std::vector<std::string> kinds;
  for (const Alternative& alternative : program.alternatives) kinds.push_back(KindOf(alternative));
  return kinds;
}

// The program with one alternative; it computes what the graph says.
ModelProgram ProgramWith(const Graph& graph, const std::string& chosen) {
  ModelProgram program = MakeProgram(graph, {chosen});
  for (const Workload& kernel : program.kernels) EXPECT_TRUE(Validate(kernel).ok()) << Validate(kernel);
  ExpectComputes(program, graph);
  return program;
}

// Two convolutions of the same kind, with padding; the sum of each with its input.
Graph Blocks() {
  GraphBuilder b("net");
  Buffer x = b.AddInput("x", DType::kF32, {1, 4, 40, 40});
  for (int i = 0; i < 2; ++i) {
    b.SetOrigins({"Conv c" + std::to_string(i)});
    const Buffer conv = BiasAndRelu(&b, Conv3x3(&b, x, 4), 1);
    b.SetOrigins({"Add a" + std::to_string(i)});
    x = Unary(&b, Op::kAbs, Sum(&b, conv, x));
  }
  b.AddOutput("y", x);
  return b.Finish();
}

TEST(AlternativesTest, AConvolutionWithAShortcutHasTwo) {
  const Graph graph = Blocks();
  const ModelProgram program = MakeProgram(graph);
  ASSERT_THAT(NamesOf(program.kernels), ElementsAre("k0_conv_add"));
  // Both would add four tasks to one kernel.
  ASSERT_THAT(KindsOf(program), ElementsAre("padding"));
  const Alternative& padding = program.alternatives[0];
  EXPECT_EQ(padding.name, WorkloadHash(program.kernels[0]) + ":padding");
  EXPECT_EQ(padding.instead_of.at(0).name, "k0_conv_add");
  EXPECT_EQ(padding.instead_of.at(0).count, 2);
  EXPECT_THAT(NamesOf(padding.parts), ElementsAre("k0a_conv", "k0b_conv_add"));
  EXPECT_EQ(padding.parts[0].count, 2);
}

TEST(AlternativesTest, TheChosenOneIsLaunchedAtAllPlaces) {
  const Graph graph = Blocks();
  const std::string hash = WorkloadHash(MakeProgram(graph).kernels[0]);
  const ModelProgram padded = ProgramWith(graph, hash + ":padding");
  EXPECT_THAT(NamesOf(padded.kernels), ElementsAre("k0a_conv", "k0b_conv_add"));
  EXPECT_EQ(padded.kernels[0].count, 2);
  ASSERT_EQ(padded.launches.size(), 4);
  EXPECT_EQ(padded.launches[3].kernel, 1);
  const ModelProgram split = ProgramWith(graph, hash + ":epilogue");
  EXPECT_THAT(NamesOf(split.kernels), ElementsAre("k0c_conv", "k0d_add"));
  EXPECT_THAT(split.launches[1].origins, ElementsAre("Add a0"));
  // The parts are those that the default program's alternatives announce, and the choice changes no names.
  EXPECT_EQ(KindsOf(padded), KindsOf(MakeProgram(graph)));
  EXPECT_EQ(padded.alternatives[0].name, MakeProgram(graph).alternatives[0].name);
  EXPECT_EQ(WorkloadHash(padded.alternatives[0].parts[0]), WorkloadHash(padded.kernels[0]));
  EXPECT_NE(ProgramDigest(padded), ProgramDigest(split));
}

TEST(AlternativesTest, UnknownChoicesChangeNothing) {
  const Graph graph = Blocks();
  EXPECT_EQ(ProgramDigest(ProgramWith(graph, "0123:padding")), ProgramDigest(MakeProgram(graph)));
  const std::string hash = WorkloadHash(MakeProgram(graph).kernels[0]);
  EXPECT_EQ(ProgramDigest(ProgramWith(graph, hash + ":producers")), ProgramDigest(MakeProgram(graph)));
}

TEST(AlternativesTest, ALongEpilogueMayBeAKernel) {
  for (const auto& [op, kinds] : {std::pair(Op::kErf, 1), std::pair(Op::kAbs, 0)}) {
    GraphBuilder b("net");
    const Buffer x = b.AddInput("x", DType::kF32, {64, 8});
    b.AddOutput("y", Unary(&b, op, BiasAndRelu(&b, Product(&b, x, 64), 1)));
    const Graph graph = b.Finish();
    const ModelProgram program = MakeProgram(graph);
    ASSERT_EQ(program.alternatives.size(), kinds);
    if (kinds == 0) continue;
    EXPECT_EQ(KindOf(program.alternatives[0]), "epilogue");
    const ModelProgram split = ProgramWith(graph, program.alternatives[0].name);
    ASSERT_EQ(split.kernels.size(), 2);
    EXPECT_EQ(split.kernels[0].stages.size(), 3);
    EXPECT_EQ(split.kernels[1].stages.size(), 1);
  }
}

TEST(AlternativesTest, WhatARowReductionPulledInMayBeAKernel) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {64, 80});
  const Buffer square = b.Map({64, 80}, [&](const Axes& a) { return Load(x, a) * Load(x, a); });
  b.AddOutput("y", b.Reduce(ReduceOp::kSum, {64}, {80}, [&](const Axes& a, const Axes& r) {
    return Load(square, {a[0], r[0]});
  }));
  const Graph graph = b.Finish();
  const ModelProgram program = MakeProgram(graph);
  ASSERT_THAT(KindsOf(program), ElementsAre("producers"));
  EXPECT_EQ(ProgramWith(graph, program.alternatives[0].name).kernels.size(), 2);
}

TEST(AlternativesTest, SmallTensorsHaveNone) {
  GraphBuilder b("net");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  b.AddOutput("y", Sum(&b, Conv3x3(&b, x, 3), x));
  EXPECT_THAT(MakeProgram(b.Finish()).alternatives, IsEmpty());
}

TEST(AlternativesTest, TheyAddAThirdOfTheTasksAtMost) {
  GraphBuilder b("net");
  Buffer x = b.AddInput("x", DType::kF32, {64, 64});
  for (int64_t i = 0; i < 9; ++i) x = Unary(&b, Op::kTanh, Product(&b, x, 128 - 7 * i));
  b.AddOutput("y", x);
  const ModelProgram program = MakeProgram(b.Finish());
  ASSERT_EQ(program.kernels.size(), 9);
  // Three tasks: a product and its tanh.
  ASSERT_THAT(KindsOf(program), ElementsAre("epilogue"));
  EXPECT_EQ(program.alternatives[0].instead_of.at(0).name, program.kernels[1].name) << "of the most work";
}

// Parts read what stands before them, and together have the nodes and the results of the group.
TEST(RegroupingsTest, RandomGraphs) {
  std::set<std::string> kinds;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    const GraphUses uses(graph);
    for (const KernelGroup& group : PartitionGraph(graph)) {
      for (const Regrouping& regrouping : RegroupingsOf(uses, group, 1)) {
        kinds.insert(regrouping.kind);
        std::set<const BufferNode*> known;
        std::set<size_t> nodes;
        for (const Buffer& input : group.inputs) known.insert(input.get());
        for (const KernelGroup& part : regrouping.parts) {
          for (const Buffer& input : part.inputs) EXPECT_TRUE(known.count(input.get())) << input->name;
          for (const Buffer& output : part.outputs) known.insert(output.get());
          nodes.insert(part.nodes.begin(), part.nodes.end());
        }
        EXPECT_THAT(nodes, testing::ElementsAreArray(group.nodes));
        EXPECT_EQ(regrouping.parts.back().outputs, group.outputs);
      }
    }
  }
  EXPECT_THAT(kinds, testing::Contains("epilogue"));
}

}  // namespace
}  // namespace mycc
