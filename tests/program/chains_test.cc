// Chains of stages along one axis, such as attention: which nodes of a graph become one kernel.
#include <gmock/gmock.h>

#include "codegen/program/partition.h"
#include "codegen/program/program.h"
#include "codegen/program/stream_groups.h"
#include "tests/graph/graph_cases.h"
#include "tests/program/program_run.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

bool Always(const Workload&) { return true; }

std::vector<std::string> KernelsOf(const ModelProgram& program) {
  std::vector<std::string> names;
  for (const Workload& workload : program.kernels) names.push_back(workload.name);
  return names;
}

// An attention, piece by piece. Tensors are [batch, head, position, element].
struct Attention {
  GraphBuilder b{"net"};
  int64_t batch, heads, queries, keys;
  Buffer q, k, v;

  Attention(int64_t batch, int64_t heads, int64_t queries, int64_t keys)
      : batch(batch), heads(heads), queries(queries), keys(keys) {
    q = b.AddInput("q", DType::kF32, {batch, heads, queries, 16});
    k = b.AddInput("k", DType::kF32, {batch, heads, keys, 16});
    v = b.AddInput("v", DType::kF32, {batch, heads, keys, 24});
  }

  Buffer Scores() {
    b.SetOrigins({"MatMul s"});
    return b.Reduce(ReduceOp::kSum, {batch, heads, queries, keys}, {16}, [&](const Axes& a, const Axes& r) {
      return Load(q, {a[0], a[1], a[2], r[0]}) * Load(k, {a[0], a[1], a[3], r[0]});
    });
  }
  Buffer Weighted(const Buffer& weights) {
    b.SetOrigins({"MatMul w"});
    return b.Reduce(ReduceOp::kSum, {batch, heads, queries, 24}, {keys}, [&](const Axes& a, const Axes& r) {
      return Load(weights, {a[0], a[1], a[2], r[0]}) * Load(v, {a[0], a[1], r[0], a[3]});
    });
  }
  Graph Finish(const Buffer& y) {
    b.AddOutput("y", y);
    return b.Finish();
  }
};

// A program whose kernels are sound, and that computes what the graph says.
ModelProgram Sound(const Graph& graph, const std::vector<std::string>& chosen = {},
                   const StreamTest& streams = Always) {
  ModelProgram program = MakeProgram(graph, chosen, streams);
  for (const Workload& kernel : program.kernels) EXPECT_TRUE(Validate(kernel).ok()) << Validate(kernel);
  ExpectComputes(program, graph);
  return program;
}

TEST(ChainsTest, AnAttentionIsOneKernel) {
  // One batch, or one head: a dimension of one element hides nothing.
  for (const auto& [batch, heads] : {std::pair(2, 3), std::pair(1, 3), std::pair(2, 1)}) {
    Attention a(batch, heads, 5, 7);
    const Graph graph = a.Finish(a.Weighted(Softmax(&a.b, a.Scores())));
    EXPECT_THAT(KernelsOf(Sound(graph)), ElementsAre("k0_matmul"));
    EXPECT_THAT(KernelsOf(Sound(graph, {}, {})), SizeIs(3)) << "where the target has no such kernel";
  }
}

TEST(ChainsTest, TheTargetIsAskedOnceForEqualWorkloads) {
  Attention a(2, 2, 5, 7);
  a.b.AddOutput("x", a.Weighted(Softmax(&a.b, a.Scores())));
  a.v = a.b.AddInput("other", DType::kF32, a.v->shape);
  const Graph graph = a.Finish(a.Weighted(Softmax(&a.b, a.Scores())));
  int asked = 0;
  const ModelProgram program = Sound(graph, {}, [&](const Workload& workload) {
    ++asked;
    EXPECT_THAT(workload.stages, SizeIs(6));
    return false;
  });
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(program.launches, SizeIs(6));
}

TEST(ChainsTest, AMaskIsPartOfIt) {
  Attention a(2, 3, 5, 7);
  const Buffer mask = a.b.AddInput("mask", DType::kF32, {2, 1, 1, 7});
  const Buffer numbers =
      a.b.Map({2, 1, 1, 7}, [&](const Axes& at) { return (Number32(1) - Load(mask, at)) * Number32(-1000); });
  const Buffer scores = a.Scores();
  const Buffer masked = a.b.Map(scores->shape, [&](const Axes& at) {
    return Load(scores, at) * Number32(0.25) + Load(numbers, {at[0], IntConst(0), IntConst(0), at[3]});
  });
  const Graph graph = a.Finish(a.Weighted(Softmax(&a.b, masked)));
  EXPECT_THAT(Sound(graph).kernels, SizeIs(1));
}

TEST(ChainsTest, WhatIsNotCheapIsAKernelOfItsOwn) {
  Attention a(2, 3, 5, 7);
  const Buffer bias = a.b.AddInput("bias", DType::kF32, {5, 7});
  const Buffer curved = Unary(&a.b, Op::kTanh, bias);
  const Buffer scores = a.Scores();
  const Buffer biased = a.b.Map(scores->shape, [&](const Axes& at) {
    return Load(scores, at) + Load(curved, {at[2], at[3]});
  });
  const Graph graph = a.Finish(a.Weighted(Softmax(&a.b, biased)));
  EXPECT_THAT(Sound(graph).kernels, SizeIs(2));
}

// A bias as large as the scores, that others read too, is read from memory.
TEST(ChainsTest, TwoChainsShareABias) {
  Attention a(1, 3, 7, 7);
  const Buffer bias = a.b.AddInput("bias", DType::kF32, {1, 3, 7, 7});
  const Buffer curved = Unary(&a.b, Op::kTanh, bias);
  const auto layer = [&] { return a.Weighted(Softmax(&a.b, Sum(&a.b, a.Scores(), curved))); };
  a.b.AddOutput("first", layer());
  a.v = Unary(&a.b, Op::kAbs, a.v);
  const Graph graph = a.Finish(layer());
  const ModelProgram program = Sound(graph);
  EXPECT_THAT(program.launches, SizeIs(4));  // the bias, the values, and both chains
  EXPECT_THAT(program.kernels, SizeIs(3));
}

// Their rows are the queries of all heads: one chain, though its tensors have another shape.
TEST(ChainsTest, GroupedQueriesAndPositionsBeforeHeads) {
  GraphBuilder b("net");
  const int64_t heads = 2, group = 3, queries = 5, keys = 7;
  const Buffer q = b.AddInput("q", DType::kF32, {queries, heads, group, 16});
  const Buffer k = b.AddInput("k", DType::kF32, {keys, heads, 16});
  const Buffer v = b.AddInput("v", DType::kF32, {keys, heads, 16});
  const Buffer scores =
      b.Reduce(ReduceOp::kSum, {heads, group, queries, keys}, {16}, [&](const Axes& a, const Axes& r) {
        return Load(q, {a[2], a[0], a[1], r[0]}) * Load(k, {a[3], a[0], r[0]});
      });
  const Buffer weights = Softmax(&b, scores);
  b.AddOutput(
      "y", b.Reduce(ReduceOp::kSum, {queries, heads, group, 16}, {keys}, [&](const Axes& a, const Axes& r) {
        return Load(weights, {a[1], a[2], a[0], r[0]}) * Load(v, {r[0], a[1], a[3]});
      }));
  EXPECT_THAT(Sound(b.Finish()).kernels, SizeIs(1));
}

// Queries, keys and values are parts of one tensor, as one product makes them. Dimensions of one element go
// away, though reductions read at sums of axes, as those over images do.
TEST(ChainsTest, OperandsMayBePartsOfATensor) {
  GraphBuilder b("net");
  const int64_t heads = 4, rows = 7;
  const Buffer x = b.AddInput("x", DType::kF32, {rows, 3 * heads, 16});
  const Buffer scores =
      b.Reduce(ReduceOp::kSum, {1, heads, rows, rows}, {16}, [&](const Axes& a, const Axes& r) {
        return Load(x, {a[2], a[1], r[0]}) * Load(x, {a[3], a[1] + heads, r[0]});
      });
  const Buffer weights = Softmax(&b, scores);
  b.AddOutput("y", b.Reduce(ReduceOp::kSum, {1, heads, rows, 16}, {rows}, [&](const Axes& a, const Axes& r) {
    return Load(weights, {a[0], a[1], a[2], r[0]}) * Load(x, {r[0], a[1] + 2 * heads, a[3]});
  }));
  const ModelProgram program = Sound(b.Finish());
  ASSERT_THAT(program.kernels, SizeIs(1));
  EXPECT_THAT(program.kernels[0].outputs[0]->shape, ElementsAre(heads, rows, 16));
}

TEST(ChainsTest, AnEpilogueIsPartOfIt) {
  Attention a(2, 3, 5, 7);
  const Buffer shortcut = a.b.AddInput("x", DType::kF32, {2, 3, 5, 24});
  const Buffer moved = Unary(&a.b, Op::kTanh, shortcut);
  const Graph graph = a.Finish(Sum(&a.b, a.Weighted(Softmax(&a.b, a.Scores())), moved));
  const ModelProgram program = Sound(graph);
  ASSERT_THAT(program.kernels, SizeIs(2));
  EXPECT_EQ(program.kernels[1].outputs.size(), 1u);
}

TEST(ChainsTest, WeightsThatAreAlsoAnOutputAreWritten) {
  Attention a(2, 3, 5, 7);
  const Buffer weights = Softmax(&a.b, a.Scores());
  a.b.AddOutput("weights", weights);
  EXPECT_THAT(Sound(a.Finish(a.Weighted(weights))).kernels, SizeIs(3));
}

TEST(ChainsTest, AReshapeEndsIt) {
  Attention a(2, 3, 5, 7);
  const Buffer flat = a.b.AddReshape(Softmax(&a.b, a.Scores()), {6, 5, 7});
  const Buffer weights = a.b.AddReshape(Unary(&a.b, Op::kAbs, flat), {2, 3, 5, 7});
  EXPECT_THAT(StreamChainsOf(GraphUses(a.Finish(a.Weighted(weights)))), IsEmpty());
}

// Both ways are tasks, and the sum of the measured times decides.
TEST(ChainsTest, ItsStagesInKernelsOfTheirOwnAreAnAlternative) {
  Attention a(2, 3, 40, 50);
  const Graph graph = a.Finish(a.Weighted(Softmax(&a.b, a.Scores())));
  const ModelProgram fused = Sound(graph);
  ASSERT_THAT(fused.alternatives, SizeIs(1));
  const Alternative& apart = fused.alternatives[0];
  EXPECT_THAT(apart.name, testing::EndsWith(":chain"));
  EXPECT_THAT(apart.parts, SizeIs(3));
  const ModelProgram split = Sound(graph, {apart.name});
  EXPECT_THAT(split.kernels, SizeIs(3));
  EXPECT_EQ(split.alternatives.at(0).name, apart.name);
}

}  // namespace
}  // namespace mycc
