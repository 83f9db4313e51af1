// The shapes that follow from those that a model declares for its outputs.
#include "codegen/onnx/declared_shapes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;

// A graph of `x` and the scalar `n` whose output `y` is declared as f32[4].
std::unordered_map<std::string, std::vector<int64_t>> ShapesOf(std::vector<OnnxNode> nodes) {
  OnnxGraph graph = BodyGraph({"x", "n"}, std::move(nodes), {"y"});
  graph.inputs[1].has_shape = true;
  graph.outputs[0].has_shape = true;
  graph.outputs[0].shape = {{4, ""}};
  return DeclaredShapesOf(graph);
}

TEST(DeclaredShapesTest, NumbersKeepTheShapeOfTheOther) {
  const auto shapes = ShapesOf({NodeOf("Sqrt", {"n"}, {"root"}), NodeOf("Range", {"n", "n", "n"}, {"r"}),
                                NodeOf("Mul", {"r", "root"}, {"scaled"}), NodeOf("Cos", {"scaled"}, {"c"}),
                                NodeOf("Sub", {"n", "c"}, {"s"}), NodeOf("Add", {"s", "scaled"}, {"y"})});
  ASSERT_EQ(shapes.count("r"), 1);
  EXPECT_THAT(shapes.at("r"), ElementsAre(4));
  EXPECT_THAT(shapes.at("c"), ElementsAre(4));
  EXPECT_EQ(shapes.count("root"), 0);
}

// Either operand may be broadcast.
TEST(DeclaredShapesTest, OperandsOfUnknownShapesTellNothing) {
  const auto shapes = ShapesOf({NodeOf("Range", {"n", "n", "n"}, {"r"}), NodeOf("Add", {"r", "x"}, {"y"})});
  EXPECT_EQ(shapes.count("r"), 0);
  EXPECT_EQ(shapes.count("x"), 0);
  EXPECT_THAT(shapes.at("y"), ElementsAre(4));
}

}  // namespace
}  // namespace mycc::onnx
