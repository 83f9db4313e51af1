// One node while it is imported: its attributes, axes and constant inputs, and shapes that are broadcast.
#include "codegen/onnx/node_import.h"

#include <gmock/gmock.h>

#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;

// A node of this attribute, and no graphs inside.
struct OneNode {
  explicit OneNode(OnnxAttribute attribute) { node.attributes["a"] = std::move(attribute); }
  NodeImport Import(std::vector<TypedTensor> inputs = {}) {
    return NodeImport(node, kLastOpset, std::move(inputs), &builder,
                      [](const OnnxGraph&, std::vector<TypedTensor>) {
                        return absl::StatusOr<std::vector<TypedTensor>>(std::vector<TypedTensor>());
                      });
  }
  OnnxNode node;
  GraphBuilder builder{"g"};
};

OnnxAttribute Integer(int64_t value) {
  OnnxAttribute attribute;
  attribute.type = 2;
  attribute.i = value;
  return attribute;
}

TEST(NodeImportTest, AttributesOrTheOperatorsDefault) {
  OneNode one(Integer(7));
  const NodeImport n = one.Import();
  EXPECT_EQ(n.Int("a", 1), 7);
  EXPECT_EQ(n.Int("b", 1), 1);
  EXPECT_EQ(n.Float("b", 0.5), 0.5);
  EXPECT_EQ(n.String("b", "text"), "text");
  EXPECT_THAT(n.Ints("b", {1, 2}), ElementsAre(1, 2));
  EXPECT_TRUE(one.builder.status().ok()) << one.builder.status();
}

TEST(NodeImportTest, AnAttributeOfAnotherTypeIsRefused) {
  OneNode one(Integer(7));
  one.Import().Float("a", 1);
  EXPECT_EQ(one.builder.status().message(), "attribute a has another type; expected a float");
}

TEST(NodeImportTest, ConstantInputs) {
  OneNode one(Integer(7));
  GraphBuilder& b = one.builder;
  const Buffer x = b.AddInput("x", DType::kI64, {2});
  const NodeImport n =
      one.Import({{x, kInt64}, {b.Ints({3, 4}), kInt64}, {b.Number(DType::kF32, 0.5), kFloat}});
  EXPECT_EQ(n.ConstantInts(0).status().message(),
            "input 0 is not known when the model is compiled; --value x=... would fix it");
  EXPECT_THAT(n.ConstantInts(1).value(), ElementsAre(3, 4));
  EXPECT_EQ(n.ConstantInts(2).status().message(), "input 2 is of type f32; expected integers");
  EXPECT_EQ(n.ConstantInts(3).status().message(), "has no input 3; expected one");
  EXPECT_THAT(n.ConstantFloats(1).value(), ElementsAre(3, 4));
  EXPECT_THAT(n.ConstantFloats(2).value(), ElementsAre(0.5));
}

TEST(NodeImportTest, AxesAreCountedFromEitherEnd) {
  OneNode one(Integer(7));
  const NodeImport n = one.Import();
  EXPECT_EQ(n.Axis(-1, 3).value(), 2);
  EXPECT_EQ(n.Axis(3, 3).status().message(), "axis 3 of a tensor of rank 3; expected -3 to 2");
  EXPECT_THAT(n.AxesOf({2, -3}, 3).value(), ElementsAre(0, 2));
  EXPECT_EQ(n.AxesOf({2, -1}, 3).status().message(), "names an axis twice");
}

TEST(BroadcastShapeTest, AlignedAtTheLastDimension) {
  EXPECT_THAT(BroadcastShape({{2, 1, 4}, {3, 1}}).value(), ElementsAre(2, 3, 4));
  EXPECT_THAT(BroadcastShape({{0}, {1}}).value(), ElementsAre(0));
  EXPECT_THAT(BroadcastShape({{}, {}}).value(), ElementsAre());
  EXPECT_EQ(BroadcastShape({{2, 3}, {2}}).status().message(), "shapes [2,3] and [2] do not fit each other");
}

TEST(OperatorTableTest, OneLineForEachOperator) {
  EXPECT_NE(FindOperator("", "Relu"), nullptr);
  EXPECT_EQ(FindOperator("", "NoSuch"), nullptr);
  EXPECT_EQ(FindOperator("com.acme", "Relu"), nullptr);
}

}  // namespace
}  // namespace mycc::onnx
