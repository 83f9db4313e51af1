// Which stages become one kernel.
#include "codegen/program/partition.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/graph/graph_cases.h"
#include "tests/graph/random_graph.h"

namespace mycc {
namespace {

std::vector<std::string> NamesOf(const std::vector<Buffer>& tensors) {
  std::vector<std::string> names;
  for (const Buffer& tensor : tensors) names.push_back(tensor->name);
  return names;
}

// Every stage that depends on an input is in one group, and groups read what stands before them.
void ExpectSoundGroups(const Graph& graph, const std::vector<KernelGroup>& groups) {
  std::set<const BufferNode*> written;
  for (const NamedTensor& input : graph.inputs) written.insert(input.tensor.get());
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<Constant>(node.made_by)) written.insert(node.outputs[0].get());
  }
  // A reshape is there when its source is.
  const auto add_reshapes = [&] {
    for (const Node& node : graph.nodes) {
      const Reshape* reshape = std::get_if<Reshape>(&node.made_by);
      if (reshape != nullptr && written.count(reshape->source.get())) written.insert(node.outputs[0].get());
    }
  };
  add_reshapes();
  std::set<const BufferNode*> outputs;
  for (const KernelGroup& group : groups) {
    EXPECT_FALSE(group.outputs.empty());
    EXPECT_TRUE(std::ranges::is_sorted(group.nodes));
    for (const Buffer& input : group.inputs) EXPECT_TRUE(written.count(input.get())) << input->name;
    for (const Buffer& output : group.outputs) {
      EXPECT_TRUE(outputs.insert(output.get()).second) << output->name;
      written.insert(output.get());
    }
    add_reshapes();
  }
  for (const NamedTensor& output : graph.outputs)
    EXPECT_TRUE(written.count(output.tensor.get())) << output.name;
}

std::vector<KernelGroup> GroupsOf(const Graph& graph) {
  std::vector<KernelGroup> groups = PartitionGraph(graph);
  ExpectSoundGroups(graph, groups);
  return groups;
}

TEST(PartitionGraphTest, PaddingConvolutionBiasAndReluAreOneKernel) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  const Buffer y = BiasAndRelu(&b, Conv3x3(&b, x, 2), 1);
  b.AddOutput("y", y);
  const Graph graph = b.Finish();
  const std::vector<KernelGroup> groups = GroupsOf(graph);
  ASSERT_EQ(groups.size(), 1) << PrintGraph(graph);
  EXPECT_EQ(groups[0].nodes.size(), 4);
  EXPECT_THAT(NamesOf(groups[0].inputs), testing::ElementsAre("v0", "v2", "v4"));
  EXPECT_THAT(groups[0].outputs, testing::ElementsAre(y));
}

TEST(PartitionGraphTest, ASoftmaxIsOneKernel) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 8});
  b.AddOutput("y", Softmax(&b, x));
  const Graph graph = b.Finish();
  const std::vector<KernelGroup> groups = GroupsOf(graph);
  ASSERT_EQ(groups.size(), 1) << PrintGraph(graph);
  EXPECT_EQ(groups[0].nodes.size(), 4);
}

TEST(PartitionGraphTest, TheSumWithAShortcutBelongsToTheSecondConvolution) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 2, 4, 5});
  const Buffer shortcut = BiasAndRelu(&b, Conv3x3(&b, x, 2), 1);
  const Buffer sum = Sum(&b, Conv3x3(&b, shortcut, 2), shortcut);
  b.AddOutput("y", Unary(&b, Op::kAbs, sum));
  const Graph graph = b.Finish();
  const std::vector<KernelGroup> groups = GroupsOf(graph);
  ASSERT_EQ(groups.size(), 2) << PrintGraph(graph);
  EXPECT_THAT(groups[0].outputs, testing::ElementsAre(shortcut));
  EXPECT_EQ(groups[1].nodes.size(), 4);
}

TEST(PartitionGraphTest, ATensorWithTwoReadersIsWritten) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer product = Product(&b, x, 6);
  b.AddOutput("one", Product(&b, Unary(&b, Op::kExp, product), 5));
  b.AddOutput("other", Product(&b, Unary(&b, Op::kTanh, product), 5));
  EXPECT_EQ(GroupsOf(b.Finish()).size(), 5);
}

TEST(PartitionGraphTest, BranchesThatMeetAgainAreOneKernel) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer product = Product(&b, x, 6);
  b.AddOutput("y", Sum(&b, Unary(&b, Op::kExp, product), Unary(&b, Op::kTanh, product)));
  EXPECT_EQ(GroupsOf(b.Finish()).size(), 1);
}

TEST(PartitionGraphTest, OperandsThatOneChainReadsAreInItsKernel) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6}), y = b.AddInput("y", DType::kF32, {4, 6});
  // Half of a tensor, negated, which one read of a larger stage takes.
  const Buffer half = b.Map({4, 3}, [&](const Axes& a) {
    return MakeUnary(Op::kNeg, Load(y, {a[0], a[1] + 3}));
  });
  const Buffer turned = b.Map({4, 6}, [&](const Axes& a) {
    const Expr first = MakeBinary(Op::kLt, a[1], IntConst(3));
    return MakeSelect(first, Load(half, a), Load(y, {a[0], a[1] - 3}));
  });
  b.AddOutput("z", Sum(&b, Sum(&b, Unary(&b, Op::kExp, x), Unary(&b, Op::kTanh, y)), turned));
  EXPECT_EQ(GroupsOf(b.Finish()).size(), 1);
}

TEST(PartitionGraphTest, WhatALargerStageReadsManyTimesIsAKernelOfItsOwn) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6}), y = b.AddInput("y", DType::kF32, {4, 6});
  const Buffer row = Unary(&b, Op::kExp, x);
  b.AddOutput("z", b.Map({4, 6}, [&](const Axes& a) { return Load(y, a) + Load(row, {a[1]}); }));
  EXPECT_EQ(GroupsOf(b.Finish()).size(), 2);
}

TEST(PartitionGraphTest, NoGroupReadsItselfThroughAnother) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 6});
  const Buffer first = Unary(&b, Op::kExp, x);
  // The sum reads `first` at once, and through a product: it cannot be in the group of `first`.
  const Buffer sum = Sum(&b, first, Product(&b, first, 6));
  b.AddOutput("y", sum);
  const std::vector<KernelGroup> groups = GroupsOf(b.Finish());
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(groups[0].outputs, testing::ElementsAre(first));
}

TEST(PartitionGraphTest, LibraryCallsAreGroupsOfTheirOwn) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6});
  const Buffer copied = b.Call("copy", {}, {Unary(&b, Op::kExp, x)}, {{DType::kF32, {6}}})[0];
  b.AddOutput("y", Unary(&b, Op::kAbs, copied));
  EXPECT_EQ(GroupsOf(b.Finish()).size(), 3);
}

TEST(PartitionGraphTest, StagesOfConstantsAreRepeatedInEachGroup) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2049, 2049});
  const Buffer one = b.Number(DType::kF32, 1);
  const Buffer table = b.Map({2049, 2049}, [&](const Axes&) { return Load(one, {}) + Load(one, {}); });
  const Buffer copied = b.Call("copy", {}, {Sum(&b, x, table)}, {{DType::kF32, {2049, 2049}}})[0];
  b.AddOutput("y", Sum(&b, copied, table));
  const Graph graph = b.Finish();
  const std::vector<KernelGroup> groups = GroupsOf(graph);
  ASSERT_EQ(groups.size(), 3) << PrintGraph(graph);
  EXPECT_EQ(groups[0].nodes.size(), 2);
  EXPECT_EQ(groups[2].nodes.size(), 2);
  EXPECT_THAT(NamesOf(groups[2].inputs), testing::UnorderedElementsAre(copied->name, one->name));
}

TEST(PartitionGraphTest, RandomGraphs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    GroupsOf(graph);
    if (HasFailure()) {
      ADD_FAILURE() << PrintGraph(graph);
      return;
    }
  }
}

}  // namespace
}  // namespace mycc
