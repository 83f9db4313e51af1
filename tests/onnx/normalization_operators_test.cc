// Normalizations and losses against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

// Mean and variance of the elements that `belongs` tells.
std::pair<double, double> MomentsOfSome(const Numbers& x, const std::function<bool(const Index&)>& belongs) {
  double sum = 0, squares = 0, count = 0;
  ForEachIndex(x.shape, [&](const Index& i) {
    if (belongs(i)) sum += x.At(i), ++count;
  });
  const double mean = sum / count;
  ForEachIndex(x.shape, [&](const Index& i) {
    if (belongs(i)) squares += (x.At(i) - mean) * (x.At(i) - mean);
  });
  return {mean, squares / count};
}

Numbers Positive(Numbers numbers) {
  for (double& value : numbers.values) value = std::abs(value) + 0.25;
  return numbers;
}

struct BatchNormParameters {
  explicit BatchNormParameters(const Index& shape)
      : scale(Numbers::Random(shape, 11)),
        bias(Numbers::Random(shape, 12)),
        mean(Numbers::Random(shape, 13)),
        variance(Positive(Numbers::Random(shape, 14))) {}

  OneOperator Node(int64_t opset, const Numbers& x, ElementType type = kFloat) const {
    OneOperator node("BatchNormalization", opset);
    node.Input(type, x).Constant(type, scale).Constant(type, bias).Constant(type, mean);
    return node.Constant(type, variance).Float("epsilon", 0.125);
  }

  Numbers scale, bias, mean, variance;
};

TEST(BatchNorm, IsOneStageOverConstants) {
  const Numbers x = Numbers::Random({2, 3, 4, 5}, 1);
  const BatchNormParameters p({3});
  Numbers expected = x;
  ForEachIndex(x.shape, [&](const Index& i) {
    const double normal = (x.At(i) - p.mean.At({i[1]})) / std::sqrt(p.variance.At({i[1]}) + 0.125);
    expected.At(i) = normal * p.scale.At({i[1]}) + p.bias.At({i[1]});
  });
  ExpectNumbers(p.Node(9, x).Run(1, DType::kF32), 0, expected);
  ExpectNumbers(p.Node(15, x, kFloat16).Run(1, DType::kF16), 0, expected, 1e-3);
  const auto graph = p.Node(15, x).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  int stages = 0;
  for (const Node& node : graph->nodes) stages += std::holds_alternative<Stage>(node.made_by);
  EXPECT_EQ(stages, 1);
}

TEST(BatchNorm, ParametersOfEachElementBeforeOpset9) {
  const Numbers x = Numbers::Random({2, 3, 2}, 2);
  const BatchNormParameters p({3, 2});
  Numbers expected = x;
  ForEachIndex(x.shape, [&](const Index& i) {
    const Index k = {i[1], i[2]};
    expected.At(i) =
        (x.At(i) - p.mean.At(k)) / std::sqrt(p.variance.At(k) + 0.125) * p.scale.At(k) + p.bias.At(k);
  });
  ExpectNumbers(p.Node(7, x).Int("spatial", 0).Run(), 0, expected);
  EXPECT_THAT(p.Node(7, x).Run().status().ToString(), HasSubstr("expected [3]"));
}

TEST(BatchNorm, TrainingMixesTheStatisticsOfTheBatch) {
  const Numbers x = Numbers::Random({4, 2, 3}, 3);
  const BatchNormParameters p({2});
  Numbers y = x, mean = p.mean, variance = p.variance, batch_mean = p.mean, batch_variance = p.mean;
  for (int64_t c = 0; c < 2; ++c) {
    const auto [m, v] = MomentsOfSome(x, [&](const Index& i) { return i[1] == c; });
    batch_mean.At({c}) = m;
    batch_variance.At({c}) = v;
    mean.At({c}) = 0.75 * p.mean.At({c}) + 0.25 * m;
    variance.At({c}) = 0.75 * p.variance.At({c}) + 0.25 * v;
  }
  ForEachIndex(x.shape, [&](const Index& i) {
    const Index c = {i[1]};
    y.At(i) =
        (x.At(i) - batch_mean.At(c)) / std::sqrt(batch_variance.At(c) + 0.125) * p.scale.At(c) + p.bias.At(c);
  });
  const auto trained = p.Node(14, x).Int("training_mode", 1).Float("momentum", 0.75).Run(3);
  const auto trained_by_outputs = p.Node(9, x).Float("momentum", 0.75).Run(5);
  for (const auto* got : {&trained, &trained_by_outputs}) {
    ExpectNumbers(*got, 0, y);
    ExpectNumbers(*got, 1, mean);
    ExpectNumbers(*got, 2, variance);
  }
  ExpectNumbers(trained_by_outputs, 3, batch_mean);
  ExpectNumbers(trained_by_outputs, 4, batch_variance);
}

TEST(GroupNorm, ParametersOfGroupsAndOfChannels) {
  const Numbers x = Numbers::Random({2, 6, 3, 2}, 4);
  for (const int64_t groups : {1, 2, 3, 6}) {
    for (const int64_t opset : {18, 21}) {
      const Index parameters = {opset < 21 ? groups : 6};
      const Numbers scale = Numbers::Random(parameters, 5), bias = Numbers::Random(parameters, 6);
      const int64_t size = 6 / groups;
      Numbers expected = x;
      ForEachIndex(x.shape, [&](const Index& i) {
        const auto [mean, variance] =
            MomentsOfSome(x, [&](const Index& k) { return k[0] == i[0] && k[1] / size == i[1] / size; });
        const Index c = {opset < 21 ? i[1] / size : i[1]};
        expected.At(i) = (x.At(i) - mean) / std::sqrt(variance + 1e-5) * scale.At(c) + bias.At(c);
      });
      OneOperator node("GroupNormalization", opset);
      node.Input(kFloat, x).Input(kFloat, scale).Input(kFloat, bias).Int("num_groups", groups);
      ExpectNumbers(node.Run(), 0, expected, 1e-4);
      EXPECT_THAT(node.Int("num_groups", 4).Run().status().ToString(), HasSubstr("expected a divisor"));
    }
  }
}

// Rounding of a sequential sum of 90 * 90 times 0.7 would be seen behind the division by the root of epsilon.
TEST(InstanceNorm, AnImageOfOneColourHasNoVariance) {
  Numbers x = Numbers::Random({1, 2, 90, 90}, 1);
  for (size_t i = 0; i < x.values.size() / 2; ++i) x.values[i] = 0.7F;
  OneOperator node("InstanceNormalization", 6);
  node.Input(kFloat, x).Constant(kFloat, Numbers::Random({2}, 2)).Constant(kFloat, Numbers{{2}, {0.5, 0.25}});
  const auto results = node.Run(1, DType::kF32);
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 90 * 90; ++i) ASSERT_NEAR((*results)[0].values[i], 0.5, 1e-4) << i;
}

TEST(LayerNorm, ScalesThatAreBroadcastAndStatisticsOfTheStashType) {
  const Numbers x = Numbers::Random({2, 3, 4}, 7);
  for (const int64_t axis : {0, 1, 2, -1}) {
    for (const Index& parameters : {Index{4}, Index{3, 1}, Index{1}}) {
      const Numbers scale = Numbers::Random(parameters, 8), bias = Numbers::Random(parameters, 9);
      const int64_t first = axis < 0 ? axis + 3 : axis;
      Index kept = x.shape;
      std::fill(kept.begin() + first, kept.end(), 1);
      Numbers y = x, means{kept, std::vector<double>(static_cast<size_t>(ElementsOf(kept)))},
              inverses = means;
      ForEachIndex(x.shape, [&](const Index& i) {
        const auto [mean, variance] = MomentsOfSome(
            x, [&](const Index& k) { return std::equal(i.begin(), i.begin() + first, k.begin()); });
        Index row = i, at(i.end() - static_cast<int64_t>(parameters.size()), i.end());
        std::fill(row.begin() + first, row.end(), 0);
        for (size_t k = 0; k < at.size(); ++k) at[k] = std::min(at[k], parameters[k] - 1);
        means.At(row) = mean;
        inverses.At(row) = 1 / std::sqrt(variance + 0.5);
        y.At(i) = (x.At(i) - mean) * inverses.At(row) * scale.At(at) + bias.At(at);
      });
      OneOperator node("LayerNormalization", 17);
      node.Input(kFloat, x).Input(kFloat, scale).Input(kFloat, bias).Float("epsilon", 0.5).Int("axis", axis);
      const auto got = node.Run(3, DType::kF32);
      ExpectNumbers(got, 0, y, 1e-4);
      ExpectNumbers(got, 1, means, 1e-4);
      ExpectNumbers(got, 2, inverses, 1e-4);
    }
  }
  OneOperator narrow("LayerNormalization", 17);
  narrow.Input(kFloat16, x).Input(kFloat16, Numbers::Random({4}, 8));
  const auto graph = narrow.Import(3);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->outputs[0].tensor->dtype, DType::kF16);
  EXPECT_EQ(graph->outputs[1].tensor->dtype, DType::kF32);
}

TEST(RmsNorm, IsOfTheTypeOfTheScale) {
  const Numbers x = Numbers::Random({3, 4}, 10), scale = Numbers::Random({4}, 11);
  Numbers expected = x;
  ForEachIndex(x.shape, [&](const Index& i) {
    double squares = 0;
    for (int64_t k = 0; k < 4; ++k) squares += x.At({i[0], k}) * x.At({i[0], k});
    expected.At(i) = x.At(i) / std::sqrt(squares / 4 + 1e-5) * scale.At({i[1]});
  });
  OneOperator node("RMSNormalization", 23);
  ExpectNumbers(node.Input(kFloat16, x).Input(kFloat, scale).Run(1, DType::kF32), 0, expected);
}

TEST(LocalResponse, WindowsOfEverySize) {
  const Numbers x = Numbers::Random({2, 5, 3}, 12);
  for (int64_t size = 1; size < 8; ++size) {
    Numbers expected = x;
    ForEachIndex(x.shape, [&](const Index& i) {
      double squares = 0;
      const int64_t first = i[1] - (size - 1) / 2;
      for (int64_t c = std::max<int64_t>(first, 0); c < std::min<int64_t>(first + size, 5); ++c)
        squares += x.At({i[0], c, i[2]}) * x.At({i[0], c, i[2]});
      expected.At(i) = x.At(i) / std::pow(2 + 0.5 / static_cast<double>(size) * squares, 0.75);
    });
    OneOperator node("LRN", 13);
    node.Input(kFloat, x).Int("size", size).Float("alpha", 0.5).Float("bias", 2);
    ExpectNumbers(node.Run(), 0, expected);
  }
}

TEST(LpNorm, ZerosStayZeros) {
  const Numbers x{{2, 3}, {3, 0, 1, -4, 0, 1}};
  const auto run = [&](int64_t p) {
    return OneOperator("LpNormalization", 1).Input(kDouble, x).Int("axis", 0).Int("p", p).Run();
  };
  const double root = std::sqrt(0.5);
  ExpectNumbers(run(1), 0, {{2, 3}, {3.0 / 7, 0, 0.5, -4.0 / 7, 0, 0.5}});
  ExpectNumbers(run(2), 0, {{2, 3}, {0.6, 0, root, -0.8, 0, root}});
  EXPECT_THAT(run(3).status().ToString(), HasSubstr("expected 1 or 2"));
}

TEST(Loss, WeightsIgnoredLabelsAndReductions) {
  const Numbers x = Numbers::Random({3, 4, 2}, 20), weights = Positive(Numbers::Random({4}, 21));
  const Numbers labels{{3, 2}, {0, 3, -1, 2, 1, -1}};
  for (int form = 0; form < 8; ++form) {
    const bool is_weighted = form & 1, is_softmax = form & 2, is_ignoring = form & 4;
    Numbers losses{{3, 2}, {}}, log_probabilities = x;
    double sum = 0, weight_sum = 0;
    ForEachIndex(labels.shape, [&](const Index& i) {
      double powers = 0;
      for (int64_t c = 0; c < 4; ++c) powers += std::exp(x.At({i[0], c, i[1]}));
      for (int64_t c = 0; c < 4; ++c) log_probabilities.At({i[0], c, i[1]}) -= std::log(powers);
      // Without an ignored label, one below the classes counts as the first class.
      const auto label = static_cast<int64_t>(std::max(labels.At(i), 0.0));
      double weight = is_weighted ? weights.At({label}) : 1;
      if (is_ignoring && labels.At(i) == -1) weight = 0;
      losses.values.push_back(-weight * (is_softmax ? log_probabilities : x).At({i[0], label, i[1]}));
      sum += losses.values.back();
      weight_sum += weight;
    });
    OneOperator node(is_softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", 13);
    node.Input(kFloat, x).Input(kInt64, labels);
    if (is_weighted) node.Input(kFloat, weights);
    if (is_ignoring) node.Int("ignore_index", -1);
    ExpectNumbers(node.String("reduction", "none").Run(), 0, losses);
    ExpectNumbers(node.String("reduction", "sum").Run(), 0, {{}, {sum}});
    ExpectNumbers(node.String("reduction", "mean").Run(), 0, {{}, {sum / weight_sum}});
    if (is_softmax) ExpectNumbers(node.Run(2), 1, log_probabilities);
    EXPECT_THAT(node.String("reduction", "some").Run().status().ToString(), HasSubstr("expected none, sum"));
  }
}

}  // namespace
}  // namespace mycc::onnx
