// Labels, decision trees and counts of grams, in the forms that the stored cases lack.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OnnxAttribute FloatsOf(std::vector<double> values) {
  OnnxAttribute attribute;
  attribute.floats = std::move(values);
  return attribute;
}

OnnxAttribute TensorOf(NDArray value, ElementType type) {
  OnnxAttribute attribute;
  attribute.tensor = {std::make_shared<const NDArray>(std::move(value)), type};
  return attribute;
}

OnnxNode OfMl(OnnxNode node) {
  node.domain = "ai.onnx.ml";
  return node;
}

absl::StatusOr<std::vector<double>> Labeled(NDArray x, OnnxAttributes attributes) {
  SmallModel model(4);
  model.Input("x", std::move(x)).Add(OfMl(NodeOf("LabelEncoder", {"x"}, {"y"}, std::move(attributes))));
  return model.Run("y");
}

TEST(LabelOperatorsTest, TheLastOfEqualKeysCounts) {
  const auto labels = Labeled(Integers({4}, {3, 1, 2, -7}), {{"keys_int64s", IntsOf({1, 3, 1})},
                                                             {"values_floats", FloatsOf({10, 30, 11})}});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(30, 11, 0, 0));
}

TEST(LabelOperatorsTest, NanIsAKey) {
  const auto labels = Labeled(Floats({3}, {kNan, 0.5, 4}), {{"keys_floats", FloatsOf({0.5, kNan})},
                                                            {"values_int64s", IntsOf({7, 8})},
                                                            {"default_int64", IntOf(9)}});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(8, 7, 9));
}

TEST(LabelOperatorsTest, KeysOfAnotherTypeAreRefused) {
  EXPECT_THAT(Labeled(Floats({1}, {1}), {{"keys_int64s", IntsOf({1})}, {"values_int64s", IntsOf({1})}})
                  .status()
                  .message(),
              HasSubstr("expected keys of its type"));
}

// Two trees of one node: x0 < 1, with NaN on the true side, and x1 == 2.
absl::StatusOr<std::vector<double>> Judged(OnnxAttributes more) {
  NDArray modes = NDArray::Zeros(DType::kU8, {2});
  modes.Set(0, Scalar{0, 1});
  modes.Set(1, Scalar{0, 4});
  OnnxAttributes attributes = {{"tree_roots", IntsOf({0, 1})},
                               {"nodes_featureids", IntsOf({0, 1})},
                               {"nodes_modes", TensorOf(modes, kUint8)},
                               {"nodes_splits", TensorOf(Floats({2}, {1, 2}), kFloat)},
                               {"nodes_missing_value_tracks_true", IntsOf({1, 0})},
                               {"nodes_trueleafs", IntsOf({1, 1})},
                               {"nodes_falseleafs", IntsOf({1, 1})},
                               {"nodes_truenodeids", IntsOf({0, 2})},
                               {"nodes_falsenodeids", IntsOf({1, 3})},
                               {"leaf_targetids", IntsOf({0, 0, 0, 1})},
                               {"leaf_weights", TensorOf(Floats({4}, {10, 20, 4, 8}), kFloat)},
                               {"n_targets", IntOf(2)}};
  more.merge(attributes);
  SmallModel model(5);
  model.Input("x", Floats({3, 2}, {0, 2, kNan, kNan, 1, 3}));
  model.Add(OfMl(NodeOf("TreeEnsemble", {"x"}, {"y"}, std::move(more))));
  return model.Run("y");
}

TEST(LabelOperatorsTest, TreesAreSummedAndAveraged) {
  const auto sums = Judged({});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_THAT(*sums, ElementsAre(14, 0, 10, 8, 20, 8));
  const auto means = Judged({{"aggregate_function", IntOf(0)}});
  ASSERT_TRUE(means.ok()) << means.status();
  EXPECT_THAT(*means, ElementsAre(7, 0, 5, 4, 10, 4));
  const auto least = Judged({{"aggregate_function", IntOf(2)}});
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ((*least)[0], 4);
  EXPECT_EQ((*least)[3], 8);
}

TEST(LabelOperatorsTest, TreesThatAreNotSound) {
  EXPECT_THAT(Judged({{"nodes_truenodeids", IntsOf({0, 4})}}).status().message(),
              HasSubstr("name no branch"));
  EXPECT_THAT(Judged({{"nodes_featureids", IntsOf({0, 2})}}).status().message(),
              HasSubstr("tests feature 2 of 2"));
  // A node that leads to itself.
  EXPECT_THAT(
      Judged({{"nodes_truenodeids", IntsOf({0, 1})}, {"nodes_trueleafs", IntsOf({1, 0})}}).status().message(),
      HasSubstr("a tree of more than 128 levels"));
}

TEST(LabelOperatorsTest, WeightsOfGrams) {
  const auto counted = [](const std::string& mode) {
    SmallModel model(9);
    model.Input("x", Integers({5}, {1, 2, 1, 2, 3}));
    model.Add(NodeOf("TfIdfVectorizer", {"x"}, {"y"},
                     {{"mode", StringOf(mode)},
                      {"min_gram_length", IntOf(1)},
                      {"max_gram_length", IntOf(2)},
                      {"max_skip_count", IntOf(1)},
                      {"ngram_counts", IntsOf({0, 2})},
                      {"ngram_indexes", IntsOf({3, 0, 1})},
                      {"pool_int64s", IntsOf({1, 9, 1, 2})},
                      {"weights", FloatsOf({0.5, 2, 4, 8})}}));
    return model.Run("y");
  };
  const auto tf = counted("TF"), idf = counted("IDF"), both = counted("TFIDF");
  ASSERT_TRUE(tf.ok()) << tf.status();
  EXPECT_THAT(*tf, ElementsAre(0, 2, 0, 2));
  ASSERT_TRUE(idf.ok()) << idf.status();
  EXPECT_THAT(*idf, ElementsAre(0, 2, 0, 8));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(*both, ElementsAre(0, 4, 0, 16));
}

}  // namespace
}  // namespace mycc::onnx
