// Selections, scatters, recurrent layers and transforms as operators: their forms give the same numbers, and
// what cannot be compiled is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;

Numbers Vector(std::vector<double> values) {
  return {{static_cast<int64_t>(values.size())}, std::move(values)};
}

OneOperator TopK(const Numbers& x, double k, int64_t axis, bool is_largest) {
  OneOperator op("TopK", 11);
  return op.Input(kFloat, x).Constant(kInt64, Vector({k})).Int("axis", axis).Int("largest", is_largest);
}

TEST(TopKOperatorTest, TheBestIsTheFirstOfTwo) {
  const Numbers x = Numbers::Random({3, 20, 2}, 1);  // with equal elements
  for (const bool is_largest : {true, false}) {
    const auto one = TopK(x, 1, 1, is_largest).Run(2), two = TopK(x, 2, 1, is_largest).Run(2);
    ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
    for (size_t output = 0; output < 2; ++output) {
      Numbers first{{3, 1, 2}, std::vector<double>(6)};
      ForEachIndex(first.shape,
                   [&](const std::vector<int64_t>& at) { first.At(at) = (*two)[output].At(at); });
      ExpectNumbers(one, output, first);
    }
  }
}

TEST(TopKOperatorTest, TheExtentIsKnownOrDeclared) {
  OneOperator op("TopK", 11);
  op.Input(kFloat, Vector({3, 1, 2})).Input(kInt64, Vector({2}));
  EXPECT_THAT(op.Import(2).status().ToString(), HasSubstr("not known when the model is compiled"));
  ExpectNumbers(op.Declare({2}).Run(2), 0, Vector({3, 2}));
  EXPECT_THAT(TopK(Vector({3, 1, 2}), 4, 0, true).Import(2).status().ToString(),
              HasSubstr("k is 4; expected 0 to 3"));
}

TEST(OneHotOperatorTest, IndicesOutsideAreOff) {
  OneOperator op("OneHot", 11);
  op.Input(kInt64, Vector({1, -1, 3, -4})).Constant(kInt64, Vector({3})).Input(kFloat, Vector({5, 7}));
  ExpectNumbers(op.Int("axis", 0).Run(), 0, {{3, 4}, {5, 5, 5, 5, 7, 5, 5, 5, 5, 7, 5, 5}});
}

TEST(ScatterOperatorTest, KnownIndicesGiveWhatOthersGive) {
  const Numbers data = Numbers::Random({4, 3, 5}, 2), updates = Numbers::Random({2, 3, 2}, 3);
  const Numbers indices{{2, 3, 2}, {0, 1, -1, 3, 9, 2, 1, 0, 0, -2, 4, -9}};
  for (int64_t axis = 0; axis < 3; ++axis) {
    OneOperator known("ScatterElements", 18), other("ScatterElements", 18);
    known.Input(kFloat, data).Constant(kInt64, indices).Input(kFloat, updates).Int("axis", axis);
    other.Input(kFloat, data).Input(kInt64, indices).Input(kFloat, updates).Int("axis", axis);
    const auto expected = other.Run();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectNumbers(known.Run(), 0, (*expected)[0]);
  }
  const Numbers tuples{{3, 2}, {0, 1, 3, -1, 4, 0}}, rows = Numbers::Random({3, 5}, 4);
  OneOperator known("ScatterND", 18), other("ScatterND", 18);
  known.Input(kFloat, data).Constant(kInt64, tuples).Input(kFloat, rows);
  other.Input(kFloat, data).Input(kInt64, tuples).Input(kFloat, rows);
  const auto expected = other.Run();
  ASSERT_TRUE(expected.ok()) << expected.status();
  ExpectNumbers(known.Run(), 0, (*expected)[0]);
}

TEST(ScatterOperatorTest, NarrowFloatsAndBoolsAreReduced) {
  OneOperator sums("ScatterElements", 18);
  sums.Input(kFloat16, Vector({1, 2, 3}))
      .Input(kInt32, Vector({1, 1, -3}))
      .Input(kFloat16, Vector({4, 0.5, 8}));
  ExpectNumbers(sums.String("reduction", "add").Run(1, DType::kF16), 0, Vector({9, 6.5, 3}));
  OneOperator all("ScatterElements", 18);
  all.Input(kBool, Vector({1, 1, 0})).Input(kInt64, Vector({0, 1, 2})).Input(kBool, Vector({0, 1, 1}));
  ExpectNumbers(all.String("reduction", "mul").Run(1, DType::kBool), 0, Vector({0, 1, 0}));
}

TEST(ScatterOperatorTest, FormsThatOnnxForbidsAreRefused) {
  OneOperator op("ScatterElements", 18);
  op.Input(kFloat, Vector({1, 2})).Input(kInt64, Vector({0})).Input(kFloat, Vector({1}));
  EXPECT_THAT(op.String("reduction", "mean").Import().status().ToString(),
              HasSubstr("the reduction is `mean`"));
  OneOperator shapes("ScatterND", 18);
  shapes.Input(kFloat, Vector({1, 2})).Input(kInt64, {{2, 1}, {0, 1}}).Input(kFloat, Vector({1}));
  EXPECT_THAT(shapes.Import().status().ToString(), HasSubstr("expected the shape [2]"));
}

TEST(TensorScatterOperatorTest, CircularWritesWrapAndIndicesAreBroughtInside) {
  const Numbers cache{{3, 4, 1}, std::vector<double>(12)}, update{{3, 2, 1}, {1, 2, 3, 4, 5, 6}};
  OneOperator circular("TensorScatter", 24);
  circular.Input(kFloat, cache).Input(kFloat, update).Input(kInt64, Vector({3, -1, 6}));
  ExpectNumbers(circular.String("mode", "circular").Run(), 0,
                {{3, 4, 1}, {2, 0, 0, 1, 4, 0, 0, 3, 0, 0, 5, 6}});
  OneOperator linear("TensorScatter", 24);
  linear.Input(kFloat, cache).Input(kFloat, update).Input(kInt64, Vector({1, 9, -9}));
  ExpectNumbers(linear.Run(), 0, {{3, 4, 1}, {0, 1, 2, 0, 0, 0, 3, 4, 5, 6, 0, 0}});
}

TEST(DataSizedOperatorTest, ConstantsDecideTheSize) {
  OneOperator non_zero("NonZero", 13);
  ExpectNumbers(non_zero.Constant(kFloat, {{2, 3}, {0, 1, 0, 2, 0, 3}}).Run(), 0,
                {{2, 3}, {0, 1, 1, 1, 0, 2}});
  OneOperator compress("Compress", 11);
  compress.Input(kFloat, {{2, 3}, {1, 2, 3, 4, 5, 6}}).Constant(kBool, Vector({1, 0, 1})).Int("axis", 1);
  ExpectNumbers(compress.Run(), 0, {{2, 2}, {1, 3, 4, 6}});
  OneOperator unique("Unique", 11);
  const auto got = unique.Constant(kFloat, Vector({2, 1, NAN, 1, NAN, -3})).Run(4);
  ExpectNumbers(got, 0, Vector({-3, 1, 2, NAN}));
  ExpectNumbers(got, 1, Vector({5, 1, 0, 2}));
  ExpectNumbers(got, 2, Vector({2, 1, 3, 1, 3, 0}));
  ExpectNumbers(got, 3, Vector({1, 2, 1, 2}));
  OneOperator boxes("NonMaxSuppression", 11);
  boxes.Constant(kFloat, {{1, 3, 4}, {0, 0, 1, 1, 0, 0.25, 1, 1.25, 2, 2, 3, 3}})
      .Constant(kFloat, {{1, 1, 3}, {0.5, 1, 0.25}});
  ExpectNumbers(boxes.Constant(kInt64, Vector({9})).Constant(kFloat, Vector({0.5})).Run(), 0,
                {{2, 3}, {0, 0, 1, 0, 0, 2}});
}

// The outputs for tensors that are known, and for the same ones that are not.
void ExpectSameWhenKnown(const std::function<OneOperator(bool is_known)>& op, size_t outputs) {
  const auto known = op(true).Run(outputs), other = op(false).Run(outputs);
  ASSERT_TRUE(known.ok()) << known.status();
  for (size_t i = 0; i < outputs; ++i) ExpectNumbers(other, i, (*known)[i], 0);
}

void AddInput(OneOperator* op, bool is_known, ElementType type, const Numbers& x) {
  is_known ? op->Constant(type, x) : op->Input(type, x);
}

TEST(DataSizedOperatorTest, DataGiveWhatConstantsGive) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Numbers x = Numbers::Random({3, 4, 2}, seed);
    for (double& value : x.values) value = std::trunc(value);  // so that some are equal, and some zero
    if (seed % 2 == 1) x.values[seed] = x.values[seed + 8] = NAN;
    const ElementType type = seed < 4 ? kFloat : seed < 6 ? kDouble : kFloat16;
    ExpectSameWhenKnown(
        [&](bool is_known) {
          OneOperator op("NonZero", 13);
          AddInput(&op, is_known, type, x);
          return op;
        },
        1);
    for (int64_t axis = -1; axis < 3; ++axis) {
      ExpectSameWhenKnown(
          [&](bool is_known) {
            OneOperator op("Unique", 11);
            AddInput(&op, is_known, type, x);
            op.Int("sorted", static_cast<int64_t>(seed % 3 != 0));
            return axis < 0 ? op : op.Int("axis", axis);
          },
          4);
      ExpectSameWhenKnown(
          [&](bool is_known) {
            OneOperator op("Compress", 11);
            op.Input(type, x);
            AddInput(&op, is_known, kBool, Vector({seed % 2 == 0 ? 1.0 : 0.0, 1}));
            return axis < 0 ? op : op.Int("axis", axis);
          },
          1);
    }
  }
}

TEST(DataSizedOperatorTest, BoxesOfDataAreThoseOfConstants) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Numbers boxes = Numbers::Random({2, 12, 4}, seed), scores = Numbers::Random({2, 3, 12}, seed + 50);
    ExpectSameWhenKnown(
        [&](bool is_known) {
          OneOperator op("NonMaxSuppression", 11);
          AddInput(&op, is_known, kFloat, boxes);
          AddInput(&op, is_known, kFloat, scores);
          AddInput(&op, is_known || seed % 2 == 0, kInt64, Vector({4}));
          AddInput(&op, is_known, kFloat, Vector({0.125 * static_cast<double>(seed)}));
          if (seed > 2) AddInput(&op, is_known, kFloat, Vector({0.25}));
          return op.Int("center_point_box", static_cast<int64_t>(seed % 2));
        },
        1);
  }
}

TEST(DataSizedOperatorTest, TheRoomIsForTheMost) {
  const auto graph = OneOperator("NonZero", 13).Input(kFloat, {{2, 3}, {1, 0, 0, 0, 0, 2}}).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->outputs.size(), 2U);
  EXPECT_EQ(graph->outputs[0].tensor->shape, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(graph->outputs[0].bounded, std::vector<int>{1});
  EXPECT_TRUE(graph->outputs[1].is_extent);
  OneOperator beyond("Compress", 11);
  beyond.Input(kFloat, Vector({1, 2})).Input(kBool, Vector({0, 0, 1}));
  EXPECT_THAT(beyond.Run().status().ToString(), HasSubstr("selects an element beyond the axis"));
}

// A layer over x[steps, batch, inputs], or with the first two axes exchanged, and exchanged back.
Numbers Layer(const char* name, int64_t gates, bool is_batch_first) {
  const auto exchanged = [&](const Numbers& from) {
    Numbers to{{from.shape[1], from.shape[0], from.shape[2]}, std::vector<double>(from.values.size())};
    ForEachIndex(to.shape, [&](const std::vector<int64_t>& at) {
      to.At(at) = from.At({at[1], at[0], at[2]});
    });
    return is_batch_first ? to : from;
  };
  OneOperator op(name, 14);
  op.Input(kFloat, exchanged(Numbers::Random({4, 3, 5}, 5)))
      .Constant(kFloat, Numbers::Random({2, gates * 6, 5}, 6));
  op.Input(kFloat, Numbers::Random({2, gates * 6, 6}, 7))
      .Input(kFloat, Numbers::Random({2, 2 * gates * 6}, 8));
  op.Input(kInt32, Vector({4, 1, 2})).Input(kFloat, exchanged(Numbers::Random({2, 3, 6}, 9)));
  op.Int("hidden_size", 6).Int("layout", is_batch_first).String("direction", "bidirectional");
  const auto outputs = op.Run(2);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? exchanged((*outputs)[1]) : Numbers();
}

TEST(RecurrentOperatorTest, BothLayoutsAreTheSameLayer) {
  const std::pair<const char*, int64_t> layers[] = {{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}};
  for (const auto& [name, gates] : layers) {
    const Numbers a = Layer(name, gates, false), b = Layer(name, gates, true);
    ASSERT_EQ(a.shape, (std::vector<int64_t>{2, 3, 6}));
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.values, b.values);
  }
}

TEST(RecurrentOperatorTest, ShapesAndDirectionsAreChecked) {
  OneOperator op("LSTM", 14);
  op.Input(kFloat, Numbers::Random({4, 3, 5}, 1)).Input(kFloat, Numbers::Random({1, 24, 5}, 2));
  op.Input(kFloat, Numbers::Random({1, 20, 6}, 3));
  EXPECT_THAT(op.Import().status().ToString(),
              HasSubstr("input 2 is f32[1,20,6]; expected the shape [1,24,6]"));
  EXPECT_THAT(op.String("direction", "up").Import().status().ToString(), HasSubstr("the direction is `up`"));
}

TEST(DftOperatorTest, TheInverseGivesTheSignalBack) {
  const Numbers x = Numbers::Random({2, 12, 1}, 10);
  const auto forward = OneOperator("DFT", 20).Input(kFloat, x).Int("onesided", 1).Run();
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_EQ((*forward)[0].shape, (std::vector<int64_t>{2, 7, 2}));
  OneOperator inverse("DFT", 20);
  inverse.Input(kFloat, (*forward)[0]).Int("onesided", 1).Int("inverse", 1);
  ExpectNumbers(inverse.Run(), 0, x);
}

TEST(DetOperatorTest, SmallAndLargeMatrices) {
  OneOperator two("Det", 11), three("Det", 11);
  ExpectNumbers(two.Input(kFloat, {{2, 2, 2}, {1, 2, 3, 4, 0, 2, -3, 5}}).Run(), 0, Vector({-2, 6}));
  ExpectNumbers(three.Input(kFloat, {{1, 3, 3}, {0, 2, 0, 1, 0, 0, 0, 0, 3}}).Run(), 0, Vector({-6}));
}

}  // namespace
}  // namespace mycc::onnx
