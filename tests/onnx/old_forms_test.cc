// Operators as opsets 1 to 6 write them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OnnxAttribute FloatOf(double value) {
  OnnxAttribute attribute;
  attribute.f = value;
  return attribute;
}

// x of shape [2, 3, 2] with another operand.
absl::StatusOr<std::vector<double>> SumWith(NDArray other, OnnxAttributes attributes) {
  SmallModel model(6);
  model.Input("x", Counting({2, 3, 2})).Input("b", std::move(other));
  model.Add(NodeOf("Add", {"x", "b"}, {"y"}, std::move(attributes)));
  return model.Run("y");
}

TEST(OldFormsTest, AxisPlacesTheSecondOperand) {
  const auto middle = SumWith(Floats({3}, {100, 200, 300}), {{"broadcast", IntOf(1)}, {"axis", IntOf(1)}});
  ASSERT_TRUE(middle.ok()) << middle.status();
  EXPECT_THAT(*middle, ElementsAre(100, 101, 202, 203, 304, 305, 106, 107, 208, 209, 310, 311));
  const auto counted_back =
      SumWith(Floats({3}, {100, 200, 300}), {{"broadcast", IntOf(1)}, {"axis", IntOf(-2)}});
  ASSERT_TRUE(counted_back.ok()) << counted_back.status();
  EXPECT_EQ(*counted_back, *middle);
  const auto last = SumWith(Floats({2}, {100, 200}), {{"broadcast", IntOf(1)}});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT(*last, ElementsAre(100, 201, 102, 203, 104, 205, 106, 207, 108, 209, 110, 211));
  const auto one = SumWith(Floats({1}, {50}), {{"broadcast", IntOf(1)}, {"axis", IntOf(0)}});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)[0], 50);
}

TEST(OldFormsTest, ShapesThatDoNotFit) {
  EXPECT_THAT(SumWith(Floats({2}, {1, 2}), {}).status().message(),
              HasSubstr("shapes [2,3,2] and [2] in opset 6 without broadcast = 1; expected one shape"));
  for (const int64_t axis : {0, 3, -4}) {
    EXPECT_THAT(
        SumWith(Floats({3}, {1, 2, 3}), {{"broadcast", IntOf(1)}, {"axis", IntOf(axis)}}).status().message(),
        HasSubstr("broadcasts [3] to [2,3,2] at axis"));
  }
}

TEST(OldFormsTest, AttributesThatBecameInputs) {
  SmallModel model(1);
  model.Input("x", Counting({1, 4})).Known("tiles", Floats({1}, {2})).Known("axis", Floats({1}, {0}));
  OnnxAttribute to;
  to.type = 3;
  to.s = "INT32";
  model.Add(NodeOf("Reshape", {"x"}, {"r"}, {{"shape", IntsOf({2, -1})}}))
      .Add(NodeOf("Tile", {"r", "tiles", "axis"}, {"t"}))
      .Add(NodeOf("Pad", {"t"}, {"p"}, {{"paddings", IntsOf({0, 1, 0, 0})}, {"value", FloatOf(9)}}))
      .Add(NodeOf("Cast", {"p"}, {"y"}, {{"to", to}}));
  std::vector<int64_t> shape;
  const auto elements = model.Run("y", &shape);
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(shape, ElementsAre(4, 3));
  EXPECT_THAT(*elements, ElementsAre(9, 0, 1, 9, 2, 3, 9, 0, 1, 9, 2, 3));
}

TEST(OldFormsTest, SlopesAreOfChannels) {
  SmallModel model(6);
  model.Input("x", Floats({1, 2, 2}, {-1, 1, -1, -2})).Known("slope", Floats({2}, {10, 20}));
  model.Add(NodeOf("PRelu", {"x", "slope"}, {"y"}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(-10, 1, -20, -40));
}

TEST(OldFormsTest, ScalesOfSides) {
  SmallModel model(1);
  model.Input("x", Counting({1, 1, 1, 2}));
  model.Add(NodeOf("Upsample", {"x"}, {"y"}, {{"height_scale", FloatOf(2)}, {"width_scale", FloatOf(2)}}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

TEST(OldFormsTest, DropoutThatDropsIsRefused) {
  SmallModel model(6);
  model.Input("x", Counting({2}));
  model.Add(NodeOf("Dropout", {"x"}, {"y"}));
  EXPECT_THAT(model.Run("y").status().message(), HasSubstr("without is_test = 1, is not supported"));
  SmallModel tested(6);
  tested.Input("x", Counting({2}));
  tested.Add(NodeOf("Dropout", {"x"}, {"y"}, {{"is_test", IntOf(1)}}));
  EXPECT_TRUE(tested.Run("y").ok());
}

}  // namespace
}  // namespace mycc::onnx
