// The features of schedules: names, width, known values.
#include "tuner/cost/features.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"

namespace mycc {
namespace {

struct Computed {
  FunctionNest nest;
  Machine machine;
  Cost cost;
};

Computed Compute(const std::string& workload, const std::string& steps, const Target& target = Avx2Target()) {
  Computed computed{AnalyzeNest(ScheduleOf(workload, steps, target).function()), Machine(target), {}};
  computed.cost = EstimateCost(computed.nest, computed.machine);
  return computed;
}

double Slot(const std::vector<FeatureSlot>& slots, const Features& features, const std::string& name) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return features[i];
  }
  ADD_FAILURE() << "no slot " << name;
  return NAN;
}

TEST(FeaturesTest, SlotsHaveNamesOfTheirOwnAndMeanings) {
  for (const auto* slots : {&BlockFeatureSlots(), &FunctionFeatureSlots()}) {
    std::set<std::string> names;
    for (const FeatureSlot& slot : *slots) {
      EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
      EXPECT_FALSE(slot.meaning.empty()) << slot.name;
    }
  }
  EXPECT_GE(BlockFeatureSlots().size(), 164u);
}

TEST(FeaturesTest, WidthIsFixedAndValuesAreFinite) {
  for (const std::string& workload :
       {GemmText(64, 64, 64), std::string("workload r(x: f32[]) -> (y: f32[]) { y[] = exp(x[]) }"),
        std::string("workload g(x: f32[1000,64], i: i32[10]) -> (y: f32[10,64]) { y[n,j] = x[clamp(i[n], 0, "
                    "999), j] }"),
        std::string("workload a(x: f32[7,9]) -> (y: i32[7]) { y[i] = argmax[j:9](x[i,j]) }")}) {
    const Computed c = Compute(workload, "");
    const Features features = FunctionFeatures(c.nest, c.cost, c.machine);
    ASSERT_EQ(features.size(), FunctionFeatureSlots().size());
    for (size_t i = 0; i < features.size(); ++i)
      EXPECT_TRUE(std::isfinite(features[i])) << FunctionFeatureSlots()[i].name << " of " << workload;
    ASSERT_EQ(BlockFeatures(c.nest, c.cost, c.machine, 0).size(), BlockFeatureSlots().size());
  }
}

TEST(FeaturesTest, KnownValues) {
  const Computed c = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 4, 2, false, true));
  const Features features = FunctionFeatures(c.nest, c.cost, c.machine);
  const auto slot = [&](const std::string& name) { return Slot(FunctionFeatureSlots(), features, name); };
  EXPECT_NEAR(slot("flops"), std::log2(2.0 * 96 * 64 * 32), 0.01);
  EXPECT_NEAR(slot("analytic_seconds"), std::log2(c.cost.seconds), 1e-4);
  EXPECT_NEAR(slot("param_bytes"), std::log2(4.0 * (96 * 32 + 32 * 64 + 96 * 64)), 0.01);
  EXPECT_EQ(slot("main.is_instruction"), 1);
  EXPECT_EQ(slot("main.accumulators"), 12);
  EXPECT_EQ(slot("main.lanes"), 16);
  EXPECT_EQ(slot("main.lane_fill"), 1);
  EXPECT_NEAR(slot("main.innermost_extent"), std::log2(33.0), 1e-4);
  EXPECT_NEAR(slot("main.instruction_product"), std::log2(1 + 96.0), 1e-4);
  EXPECT_EQ(slot("main.buf0.in_registers"), 1);
  // The accumulators come first, then the larger of the operands: a, 12 KB.
  EXPECT_EQ(slot("main.buf1.lane_broadcast"), 1);
  EXPECT_EQ(slot("main.buf2.lane_unit"), 1);
  EXPECT_EQ(slot("main.buf2.packed"), 1);
  EXPECT_EQ(slot("main.buf3.present"), 0);
  EXPECT_EQ(slot("target_registers"), 16);
}

TEST(FeaturesTest, SchedulesDiffer) {
  const Computed a = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 4, 2, false, true));
  const Computed b = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 2, 4, false, true));
  EXPECT_NE(FunctionFeatures(a.nest, a.cost, a.machine), FunctionFeatures(b.nest, b.cost, b.machine));
}

}  // namespace
}  // namespace mycc
