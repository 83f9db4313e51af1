// Operators on shapes, slices, gathers, pads, Einsum and control flow, in the forms that the stored cases
// lack.
#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

// The elements that a model gives, or nothing and a failure with its error.
std::vector<double> ElementsOf(SmallModel& model, const std::string& output,
                               std::vector<int64_t>* shape = nullptr) {
  const auto elements = model.Run(output, shape);
  EXPECT_TRUE(elements.ok()) << elements.status();
  return elements.value_or(std::vector<double>());
}

std::string ErrorOf(SmallModel& model, absl::StatusCode code) {
  const auto graph = model.Import({"y"});
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  return std::string(graph.status().message());
}

// The view(x.size(0), -1) of exporters: no node is left but the reshape.
TEST(MovesTest, ArithmeticOnShapesIsComputed) {
  SmallModel model(13);
  model.Input("x", Counting({2, 3, 2})).Known("zero", Integers({}, {0})).Known("axes", Integers({1}, {0}));
  model.Known("rest", Integers({1}, {-1}));
  model.Add(NodeOf("Shape", {"x"}, {"s"}))
      .Add(NodeOf("Gather", {"s", "zero"}, {"batch"}))
      .Add(NodeOf("Unsqueeze", {"batch", "axes"}, {"batches"}))
      .Add(NodeOf("Concat", {"batches", "rest"}, {"wanted"}, {{"axis", IntOf(0)}}));
  EXPECT_TRUE(model.IsKnown("wanted"));
  model.Add(NodeOf("Reshape", {"x", "wanted"}, {"y"}));
  const auto graph = model.Import({"y"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1);
  EXPECT_THAT(graph->outputs[0].tensor->shape, ElementsAre(2, 6));
}

// Slices of a shape, and a product of its parts, as exporters write flatten(1) and chunks.
TEST(MovesTest, SlicedShapesAreComputed) {
  SmallModel model(13);
  model.Input("x", Counting({2, 3, 4})).Known("one", Integers({1}, {1})).Known("end", Integers({1}, {kMost}));
  model.Known("zero", Integers({1}, {0})).Known("two", Integers({1}, {2}));
  model.Add(NodeOf("Shape", {"x"}, {"s"}))
      .Add(NodeOf("Slice", {"s", "one", "end", "zero"}, {"tail"}))
      .Add(NodeOf("Mul", {"tail", "two"}, {"doubled"}))
      .Add(NodeOf("ConstantOfShape", {"doubled"}, {"y"}));
  EXPECT_TRUE(model.IsKnown("doubled"));
  std::vector<int64_t> shape;
  ElementsOf(model, "y", &shape);
  EXPECT_THAT(shape, ElementsAre(6, 8));
}

TEST(MovesTest, ShapesThatAreNotKnownAreNotSupported) {
  SmallModel model(13);
  model.Input("x", Counting({6})).Input("s", Integers({2}, {2, 3})).Add(NodeOf("Reshape", {"x", "s"}, {"y"}));
  EXPECT_THAT(ErrorOf(model, absl::StatusCode::kUnimplemented), HasSubstr("input 1 (`s`) is not known"));
}

TEST(MovesTest, DeclaredShapesStandForShapesThatAreNotKnown) {
  SmallModel model(13);
  model.Input("x", Counting({6})).Input("s", Integers({2}, {2, 3})).Declare("y", {2, 3});
  model.Add(NodeOf("Reshape", {"x", "s"}, {"y"}));
  std::vector<int64_t> shape;
  ElementsOf(model, "y", &shape);
  EXPECT_THAT(shape, ElementsAre(2, 3));
  SmallModel other(13);
  other.Input("x", Counting({6})).Input("s", Integers({2}, {2, 3})).Declare("y", {2, 4});
  other.Add(NodeOf("Reshape", {"x", "s"}, {"y"}));
  EXPECT_THAT(ErrorOf(other, absl::StatusCode::kInvalidArgument), HasSubstr("expected as many elements"));
}

// The limits, the axis and the step are inputs; a step of -2 from the last element.
TEST(MovesTest, LimitsOfSlicesMayBeRead) {
  SmallModel model(13);
  model.Input("x", Counting({2, 5})).Input("s", Integers({1}, {-1})).Input("e", Integers({1}, {kLeast}));
  model.Input("a", Integers({1}, {-1})).Input("p", Integers({1}, {-2})).Declare("y", {2, 3});
  model.Add(NodeOf("Slice", {"x", "s", "e", "a", "p"}, {"y"}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(4, 2, 0, 9, 7, 5));
}

TEST(MovesTest, PadsMayBeRead) {
  SmallModel model(18);
  model.Input("x", Counting({2, 3})).Input("p", Integers({2}, {-1, 2})).Input("a", Integers({1}, {-1}));
  model.Declare("y", {2, 4});
  model.Add(NodeOf("Pad", {"x", "p", "", "a"}, {"y"}, {{"mode", StringOf("reflect")}}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(1, 2, 1, 2, 4, 5, 4, 5));
}

TEST(MovesTest, ReshapesOfOtherSizesAreRefused) {
  for (const auto& wanted : {std::vector<int64_t>{4, -1}, {-1, -1}, {-2, 3}, {7}, {0, 0}, {6, 0}}) {
    SmallModel model(13);
    model.Input("x", Counting({6})).Known("s", Integers({static_cast<int64_t>(wanted.size())}, wanted));
    model.Add(NodeOf("Reshape", {"x", "s"}, {"y"}));
    EXPECT_THAT(ErrorOf(model, absl::StatusCode::kInvalidArgument), HasSubstr("f32[6]"));
  }
}

TEST(MovesTest, UnitAxesMoveByReshape) {
  SmallModel model(13);
  model.Input("x", Counting({3, 1, 2})).Add(NodeOf("Transpose", {"x"}, {"y"}, {{"perm", IntsOf({1, 0, 2})}}));
  const auto graph = model.Import({"y"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1);
  EXPECT_TRUE(std::holds_alternative<Reshape>(graph->nodes[0].made_by));
}

TEST(MovesTest, SlicesWalkBackToTheBeginning) {
  SmallModel model(13);
  model.Input("x", Counting({5})).Known("s", Integers({1}, {-1})).Known("e", Integers({1}, {kLeast}));
  model.Known("a", Integers({1}, {-1})).Known("p", Integers({1}, {-2}));
  model.Add(NodeOf("Slice", {"x", "s", "e", "a", "p"}, {"y"}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(4, 2, 0));
}

TEST(MovesTest, SlicesOfTheWholeAreTheSourceItself) {
  SmallModel model(9);
  model.Input("x", Counting({5}))
      .Add(NodeOf("Slice", {"x"}, {"y"}, {{"starts", IntsOf({-9})}, {"ends", IntsOf({kMost})}}));
  const auto graph = model.Import({"y"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->nodes, IsEmpty());
}

TEST(MovesTest, TheLastPartOfASplitMayBeSmaller) {
  SmallModel model(18);
  model.Input("x", Counting({5})).Add(NodeOf("Split", {"x"}, {"a", "b"}, {{"num_outputs", IntOf(2)}}));
  EXPECT_THAT(ElementsOf(model, "b"), ElementsAre(3, 4));
  SmallModel earlier(13);
  earlier.Input("x", Counting({5})).Add(NodeOf("Split", {"x"}, {"y", "b"}));
  EXPECT_THAT(ErrorOf(earlier, absl::StatusCode::kInvalidArgument), HasSubstr("expected equal parts"));
}

TEST(MovesTest, KnownIndicesThatAdvanceEvenlyAreSlices) {
  SmallModel model(13);
  model.Input("x", Counting({6})).Known("i", Integers({3}, {-1, 3, 1}));
  model.Add(NodeOf("Gather", {"x", "i"}, {"y"}));
  const auto graph = model.Import({"y"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes.size(), 1);
}

TEST(MovesTest, IndicesAreCheckedOrClamped) {
  SmallModel known(13);
  known.Input("x", Counting({6})).Known("i", Integers({2}, {0, 6}));
  known.Add(NodeOf("Gather", {"x", "i"}, {"y"}));
  EXPECT_THAT(ErrorOf(known, absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("the index 6"), HasSubstr("expected -6 to 5")));
  SmallModel read(13);
  read.Input("x", Counting({6})).Input("i", Integers({4}, {-6, -1, 5, 9}));
  read.Add(NodeOf("Gather", {"x", "i"}, {"y"}));
  EXPECT_THAT(ElementsOf(read, "y"), ElementsAre(0, 5, 5, 5));
}

TEST(MovesTest, PadsCutBeforeTheyReflect) {
  SmallModel model(13);
  model.Input("x", Counting({5})).Known("p", Integers({2}, {-1, 2}));
  model.Add(NodeOf("Pad", {"x", "p"}, {"y"}, {{"mode", StringOf("reflect")}}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(1, 2, 3, 4, 3, 2));
}

TEST(MovesTest, PadsOfEmptyTensorsAreConstant) {
  SmallModel model(13);
  model.Input("x", Counting({0})).Known("p", Integers({2}, {1, 1})).Known("v", Floats({}, {7}));
  model.Add(NodeOf("Pad", {"x", "p", "v"}, {"y"}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(7, 7));
  SmallModel edge(13);
  edge.Input("x", Counting({0})).Known("p", Integers({2}, {1, 1}));
  edge.Add(NodeOf("Pad", {"x", "p"}, {"y"}, {{"mode", StringOf("edge")}}));
  EXPECT_THAT(ErrorOf(edge, absl::StatusCode::kInvalidArgument), HasSubstr("has no elements"));
}

TEST(MovesTest, PadsThatAreTooLongAreRefused) {
  constexpr int64_t kMost = (1 << 29) - 2;  // around two elements
  const auto padded = [](const char* mode, int64_t before, int64_t after) {
    SmallModel model(19);
    model.Input("x", Counting({2})).Known("p", Integers({2}, {before, after}));
    model.Add(NodeOf("Pad", {"x", "p"}, {"y"}, {{"mode", StringOf(mode)}}));
    return model;
  };
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    for (const auto& [before, after] : {std::pair(kMost, int64_t{0}), {int64_t{0}, kMost}, {7, kMost - 7}}) {
      SmallModel largest = padded(mode, before, after), larger = padded(mode, before + 1, after);
      EXPECT_EQ(largest.Import({"y"}).status(), absl::OkStatus());
      EXPECT_THAT(ErrorOf(larger, absl::StatusCode::kInvalidArgument),
                  HasSubstr("at most 536870912 elements"));
    }
  }
}

// a [2,3], b [3,2], c [2]: the vector is contracted first, which keeps every result small.
TEST(MovesTest, EinsumContractsTheSmallestPairFirst) {
  SmallModel model(13);
  model.Input("a", Counting({2, 3})).Input("b", Counting({3, 2})).Input("c", Counting({2}));
  model.Add(NodeOf("Einsum", {"a", "b", "c"}, {"y"}, {{"equation", StringOf("ij, jk, k -> i")}}));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(13, 40));
}

TEST(MovesTest, EinsumRefusesWhatDoesNotFit) {
  for (const char* equation :
       {"ij", "ij,jk,kl->il", "ij,jk->ii", "ij,jk->iz", "ijk,jk->i", "i j . ,jk->i", "ij,jk->i->k"}) {
    SmallModel model(13);
    model.Input("a", Counting({2, 3})).Input("b", Counting({3, 2}));
    model.Add(NodeOf("Einsum", {"a", "b"}, {"y"}, {{"equation", StringOf(equation)}}));
    EXPECT_THAT(ErrorOf(model, absl::StatusCode::kInvalidArgument), HasSubstr("expected")) << equation;
  }
}

OnnxNode IfNode() {
  return NodeOf("If", {"c"}, {"y"},
                {{"then_branch", GraphOf(BodyGraph({}, {NodeOf("Add", {"x", "x"}, {"t"})}, {"t"}))},
                 {"else_branch", GraphOf(BodyGraph({}, {NodeOf("Mul", {"x", "x"}, {"e"})}, {"e"}))}});
}

TEST(MovesTest, BranchesAreTakenOrChosen) {
  for (const bool condition : {true, false}) {
    SmallModel known(13), read(13);
    known.Input("x", Counting({4})).Known("c", Bool(condition)).Add(IfNode());
    read.Input("x", Counting({4})).Input("c", Bool(condition)).Add(IfNode());
    const auto graph = known.Import({"y"});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->nodes.size(), 1);
    EXPECT_EQ(ElementsOf(read, "y")[3], condition ? 6 : 9);
  }
}

// Doubles x while the condition holds, and gathers what it has.
OnnxNode LoopNode(const std::string& trips, std::vector<OnnxNode> condition, bool gathers) {
  std::vector<OnnxNode> nodes = std::move(condition);
  nodes.push_back(NodeOf("Add", {"v", "v"}, {"next"}));
  std::vector<std::string> results = {"go", "next"}, outputs = {"y"};
  if (gathers) {
    results.push_back("v");
    outputs.push_back("all");
  }
  return NodeOf("Loop", {trips, "", "x"}, outputs,
                {{"body", GraphOf(BodyGraph({"i", "held", "v"}, std::move(nodes), results))}});
}

TEST(MovesTest, LoopsAreUnrolled) {
  SmallModel model(13);
  model.Input("x", Floats({1}, {1})).Known("trips", Integers({}, {3}));
  model.Add(LoopNode("trips", {NodeOf("Identity", {"held"}, {"go"})}, true));
  std::vector<int64_t> shape;
  EXPECT_THAT(ElementsOf(model, "all", &shape), ElementsAre(1, 2, 4));
  EXPECT_THAT(shape, ElementsAre(3, 1));
}

TEST(MovesTest, LoopsEndByACountedCondition) {
  SmallModel model(13);
  model.Input("x", Floats({1}, {1})).Known("most", Integers({}, {4}));
  model.Add(LoopNode("", {NodeOf("Less", {"i", "most"}, {"go"})}, false));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(32));
}

// The values after the condition failed are kept.
TEST(MovesTest, LoopsEndByAConditionThatIsNotKnown) {
  SmallModel model(13);
  model.Input("x", Floats({1}, {3})).Input("most", Floats({1}, {10})).Known("trips", Integers({1}, {8}));
  model.Add(LoopNode("trips", {NodeOf("Less", {"v", "most"}, {"go"})}, false));
  EXPECT_THAT(ElementsOf(model, "y"), ElementsAre(24));
}

TEST(MovesTest, LoopsWithoutEndAreNotSupported) {
  SmallModel model(13);
  model.Input("x", Floats({1}, {1})).Add(LoopNode("", {NodeOf("Identity", {"held"}, {"go"})}, false));
  EXPECT_THAT(ErrorOf(model, absl::StatusCode::kUnimplemented), HasSubstr("more than 1024 repetitions"));
}

// Sums from the last column to the first; the sums stand in a new last axis, the first sum last.
TEST(MovesTest, ScansWalkBackwards) {
  SmallModel model(11);
  model.Known("start", Floats({2}, {0, 0})).Input("x", Counting({2, 3}));
  OnnxGraph body =
      BodyGraph({"sum", "column"}, {NodeOf("Add", {"sum", "column"}, {"next"})}, {"next", "next"});
  model.Add(NodeOf("Scan", {"start", "x"}, {"total", "sums"},
                   {{"body", GraphOf(std::move(body))},
                    {"num_scan_inputs", IntOf(1)},
                    {"scan_input_axes", IntsOf({-1})},
                    {"scan_input_directions", IntsOf({1})},
                    {"scan_output_axes", IntsOf({-1})},
                    {"scan_output_directions", IntsOf({1})}}));
  std::vector<int64_t> shape;
  EXPECT_THAT(ElementsOf(model, "sums", &shape), ElementsAre(3, 3, 2, 12, 9, 5));
  EXPECT_THAT(shape, ElementsAre(2, 3));
}

TEST(NonMaxSuppressionTest, TheLargestNumberOfBoxesIsNoLimit) {
  for (const bool is_known : {true, false}) {
    SmallModel model(11);
    const NDArray scores = Floats({1, 1, 2}, {0.5, 1});
    model.Known("boxes", Floats({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3})).Known("most", Integers({1}, {kMost}));
    is_known ? model.Known("scores", scores) : model.Input("scores", scores);
    model.Add(NodeOf("NonMaxSuppression", {"boxes", "scores", "most"}, {"rows"}));
    const auto rows = model.Run("rows");
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(*rows, ElementsAre(0, 0, 1, 0, 0, 0));
  }
}

}  // namespace
}  // namespace mycc::onnx
