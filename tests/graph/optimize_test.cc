// All passes in their order, on random graphs.
#include "codegen/graph/optimize.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/graph/graph_cases.h"
#include "tests/graph/random_graph.h"

namespace mycc {
namespace {

TEST(OptimizeGraphTest, PassesHaveNamesOfTheirOwn) {
  const std::vector<std::string> names = GraphPassNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) EXPECT_EQ(name.rfind("graph.", 0), 0) << name;
}

TEST(OptimizeGraphTest, RandomGraphsComputeTheSame) {
  Target gpu;
  gpu.kind = TargetKind::kCuda;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    const Graph before = RandomGraph(seed / 2);
    const auto after = OptimizeGraph(before, seed % 2 == 0 ? Target() : gpu);
    ASSERT_TRUE(after.ok()) << after.status() << "\n" << PrintGraph(before);
    ExpectSameResults(before, *after);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mycc
