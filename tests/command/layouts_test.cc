// The layouts of a model's images: one model, two programs that compute the same, and the alternative that
// tells them apart.
#include "command/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "codegen/graph/interpret.h"
#include "codegen/workload/canonical.h"
#include "tests/program/program_run.h"

namespace mycc {
namespace {

using ::testing::IsEmpty;

const Target kCpu = ParseTarget("v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2").value();

Graph Images(int64_t channels, int64_t size) {
  GraphBuilder b("images");
  Buffer x = b.AddInput("x", DType::kF32, {1, 3, size, size});
  for (int i = 0; i < 2; ++i) x = BiasAndRelu(&b, Conv3x3(&b, x, channels), 1);
  b.AddOutput("y", x);
  return b.Finish();
}

std::map<std::string, int64_t> Counts(const std::vector<Workload>& kernels) {
  std::map<std::string, int64_t> counts;
  for (const Workload& kernel : kernels) counts[CanonicalText(kernel)] += kernel.count;
  return counts;
}

std::vector<LaidOutModel> LaidOut(const Graph& graph, const Target& target = kCpu) {
  return LayOut(graph, target, {}).value();
}

// The kernels without those that the alternative replaces, and with its parts, are the other program's.
void ExpectDifference(const std::vector<LaidOutModel>& models) {
  const ModelProgram& preferred = models[0].program;
  const Alternative& layout = preferred.alternatives.back();
  EXPECT_EQ(layout.name, "layout:" + models[1].layout);
  std::map<std::string, int64_t> counts = Counts(preferred.kernels);
  for (const auto& [text, count] : Counts(layout.instead_of)) counts[text] -= count;
  for (const auto& [text, count] : Counts(layout.parts)) counts[text] += count;
  for (auto at = counts.begin(); at != counts.end();) at = at->second == 0 ? counts.erase(at) : std::next(at);
  EXPECT_EQ(counts, Counts(models[1].program.kernels));
}

TEST(LayoutsTest, WideImagesOfFewChannelsArePredictedToBeFasterInPlanes) {
  const Graph graph = Images(5, 96);
  const std::vector<LaidOutModel> models = LaidOut(graph);
  ASSERT_EQ(models.size(), 2);
  EXPECT_EQ(models[0].layout, "planes");
  EXPECT_EQ(models[1].layout, "channels_last");
  ExpectDifference(models);
  const std::vector<NDArray> inputs = RandomValues(graph, 7);
  const std::vector<NDArray> expected = InterpretGraph(graph, inputs).value();
  for (const LaidOutModel& model : models)
    EXPECT_EQ(ProgramRun(model.program, inputs).Run()[0].bytes, expected[0].bytes) << model.layout;
}

TEST(LayoutsTest, ManyChannelsStandLast) {
  const std::vector<LaidOutModel> models = LaidOut(Images(64, 32));
  EXPECT_EQ(models[0].layout, "channels_last");
}

TEST(LayoutsTest, AModelWithoutImagesHasOne) {
  GraphBuilder b("plain");
  b.AddOutput("y", Product(&b, b.AddInput("x", DType::kF32, {8, 16}), 4));
  const std::vector<LaidOutModel> models = LaidOut(b.Finish());
  EXPECT_EQ(models.size(), 1);
  EXPECT_THAT(models[0].program.alternatives, IsEmpty());
}

TEST(LayoutsTest, OnAGpuChannelsStandLast) {
  const std::vector<LaidOutModel> models = LaidOut(Images(5, 96), ParseTarget("h100").value());
  ASSERT_EQ(models.size(), 1);
  EXPECT_EQ(models[0].layout, "channels_last");
}

TEST(LayoutsTest, NamesOfAlternatives) {
  EXPECT_TRUE(IsLayoutAlternative("layout:planes"));
  EXPECT_FALSE(IsLayoutAlternative("0123:padding"));
  EXPECT_EQ(LayoutOf("layout:planes"), "planes");
}

}  // namespace
}  // namespace mycc
