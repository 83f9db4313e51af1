// Sequences and optionals inside a model.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// x, and the sequence `s` of its three rows.
SmallModel Rows() {
  SmallModel model(17);
  model.Input("x", Counting({3, 2})).Known("zero", Integers({}, {0})).Known("last", Integers({}, {-1}));
  model.Add(NodeOf("SplitToSequence", {"x"}, {"s"}, {{"axis", IntOf(0)}, {"keepdims", IntOf(0)}}));
  return model;
}

TEST(SequenceOperatorsTest, ElementsAreTakenInsertedAndErased) {
  SmallModel model = Rows();
  model.Add(NodeOf("SequenceAt", {"s", "last"}, {"row"}))
      .Add(NodeOf("SequenceInsert", {"s", "row", "zero"}, {"longer"}))
      .Add(NodeOf("SequenceErase", {"longer"}, {"shorter"}))
      .Add(NodeOf("SequenceLength", {"shorter"}, {"length"}))
      .Add(NodeOf("ConcatFromSequence", {"shorter"}, {"y"}, {{"axis", IntOf(0)}, {"new_axis", IntOf(1)}}));
  EXPECT_TRUE(model.IsKnown("length"));
  std::vector<int64_t> shape;
  const auto elements = model.Run("y", &shape);
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(shape, ElementsAre(3, 2));
  EXPECT_THAT(*elements, ElementsAre(4, 5, 0, 1, 2, 3));
}

TEST(SequenceOperatorsTest, PartsOfASizeAndParts) {
  SmallModel model(17);
  model.Input("x", Counting({5})).Known("two", Integers({}, {2})).Known("parts", Integers({2}, {1, 4}));
  model.Known("last", Integers({}, {-1}));
  model.Add(NodeOf("SplitToSequence", {"x", "two"}, {"a"}))
      .Add(NodeOf("SplitToSequence", {"x", "parts"}, {"b"}))
      .Add(NodeOf("SequenceAt", {"a", "last"}, {"u"}))
      .Add(NodeOf("SequenceAt", {"b", "last"}, {"v"}))
      .Add(NodeOf("Concat", {"u", "v"}, {"y"}, {{"axis", IntOf(0)}}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(4, 1, 2, 3, 4));
}

TEST(SequenceOperatorsTest, ABodyForEachElement) {
  SmallModel model = Rows();
  const OnnxGraph body = BodyGraph({"row", "rows"}, {NodeOf("Add", {"row", "rows"}, {"sum"})}, {"sum"});
  model.Add(NodeOf("SequenceMap", {"s", "s"}, {"doubled"}, {{"body", GraphOf(body)}}))
      .Add(NodeOf("ConcatFromSequence", {"doubled"}, {"y"}, {{"axis", IntOf(0)}}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(0, 2, 4, 6, 8, 10));
}

TEST(SequenceOperatorsTest, ALoopCarriesASequence) {
  SmallModel model(17);
  model.Input("x", Counting({2})).Known("trips", Integers({}, {3})).Known("true", Bool(true));
  model.Add(NodeOf("SequenceEmpty", {}, {"none"}));
  const OnnxGraph body = BodyGraph({"i", "go", "before"},
                                   {NodeOf("SequenceInsert", {"before", "x"}, {"after"})}, {"go", "after"});
  model.Add(NodeOf("Loop", {"trips", "true", "none"}, {"s"}, {{"body", GraphOf(body)}}))
      .Add(NodeOf("ConcatFromSequence", {"s"}, {"y"}, {{"axis", IntOf(0)}}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(0, 1, 0, 1, 0, 1));
}

// A choice between sequences of one length is one between their elements.
TEST(SequenceOperatorsTest, AConditionThatIsNotKnown) {
  SmallModel model = Rows();
  model.Input("is_then", Bool(false));
  const OnnxGraph then_branch = BodyGraph({}, {NodeOf("Identity", {"s"}, {"t"})}, {"t"});
  const OnnxGraph else_branch = BodyGraph(
      {}, {NodeOf("Neg", {"row"}, {"r"}), NodeOf("SequenceConstruct", {"r", "r", "r"}, {"t"})}, {"t"});
  model.Add(NodeOf("SequenceAt", {"s", "zero"}, {"row"}))
      .Add(NodeOf("If", {"is_then"}, {"chosen"},
                  {{"then_branch", GraphOf(then_branch)}, {"else_branch", GraphOf(else_branch)}}))
      .Add(NodeOf("SequenceAt", {"chosen", "last"}, {"y"}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(0, -1));
}

TEST(SequenceOperatorsTest, Optionals) {
  SmallModel model = Rows();
  model.Add(NodeOf("Optional", {}, {"nothing"}))
      .Add(NodeOf("Optional", {"x"}, {"something"}))
      .Add(NodeOf("OptionalHasElement", {"nothing"}, {"no"}))
      .Add(NodeOf("OptionalHasElement", {"something"}, {"yes"}))
      .Add(NodeOf("OptionalGetElement", {"something"}, {"same"}))
      .Add(NodeOf("Xor", {"no", "yes"}, {"y"}));
  const auto elements = model.Run("y");
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(1));
  SmallModel empty = Rows();
  empty.Add(NodeOf("Optional", {}, {"nothing"})).Add(NodeOf("OptionalGetElement", {"nothing"}, {"y"}));
  EXPECT_THAT(empty.Run("y").status().message(), HasSubstr("an optional without"));
}

// The parts' extents are not known, and their number is.
TEST(SequenceOperatorsTest, PartsThatAreNotKnown) {
  SmallModel model(17);
  model.Input("x", Counting({5})).Input("parts", Integers({2}, {1, 4})).Known("zero", Integers({}, {0}));
  model.Add(NodeOf("SplitToSequence", {"x", "parts"}, {"s"})).Add(NodeOf("SequenceLength", {"s"}, {"y"}));
  EXPECT_TRUE(model.IsKnown("y"));
  model.Add(NodeOf("SequenceAt", {"s", "zero"}, {"element"}));
  EXPECT_THAT(model.Run("element").status().message(), HasSubstr("whose shape is not known"));
}

TEST(SequenceOperatorsTest, WhatIsRefused) {
  SmallModel place = Rows();
  place.Known("three", Integers({}, {3})).Add(NodeOf("SequenceAt", {"s", "three"}, {"y"}));
  EXPECT_THAT(place.Run("y").status().message(),
              HasSubstr("position 3 of a sequence of 3; expected -3 to 2"));
  SmallModel tensor = Rows();
  tensor.Add(NodeOf("SequenceLength", {"x"}, {"y"}));
  EXPECT_THAT(tensor.Run("y").status().message(), HasSubstr("input 0 is f32[3,2]; expected a sequence"));
}

}  // namespace
}  // namespace mycc::onnx
