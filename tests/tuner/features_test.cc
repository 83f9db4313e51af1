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

// The slots whose values differ by more than rounding.
std::set<std::string> Changed(const Computed& a, const Computed& b) {
  const Features of_a = FunctionFeatures(a.nest, a.cost, a.machine),
                 of_b = FunctionFeatures(b.nest, b.cost, b.machine);
  std::set<std::string> changed;
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (std::abs(of_a[i] - of_b[i]) > 1e-4) changed.insert(FunctionFeatureSlots()[i].name);
  }
  return changed;
}

double ValueOf(const Computed& c, const std::string& name) {
  return Slot(FunctionFeatureSlots(), FunctionFeatures(c.nest, c.cost, c.machine), name);
}

TEST(FeaturesTest, ATileOfTwiceTheRowsChangesItsSlotsAndNotThoseOfTheWork) {
  const Computed narrow = Compute(GemmText(96, 64, 32), TiledGemmSteps(3, 16, 4, 2, false, true)),
                 wide = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 4, 2, false, true));
  EXPECT_NEAR(ValueOf(wide, "main.tile_rows") - ValueOf(narrow, "main.tile_rows"), 1, 1e-4);
  EXPECT_EQ(ValueOf(wide, "main.accumulators"), 2 * ValueOf(narrow, "main.accumulators"));
  const std::set<std::string> changed = Changed(narrow, wide);
  for (const char* slot : {"main.tile_rows", "main.accumulators", "main.instruction_product",
                           "main.register_pressure", "main.arithmetic_per_load", "main.buf1.tile_bytes"})
    EXPECT_TRUE(changed.contains(slot)) << slot;
  for (const char* slot : {"flops", "param_bytes", "main.fused", "main.tile_columns", "main.lanes",
                           "main.loops", "main.elem_bytes", "main.buf2.unique_bytes", "target_l2"})
    EXPECT_FALSE(changed.contains(slot)) << slot;
}

TEST(FeaturesTest, PrefetchingChangesItsSlotsAlone) {
  const std::string steps = TiledGemmSteps(6, 16, 4, 2, false, true);
  const Computed without = Compute(GemmText(96, 64, 32), steps),
                 with = Compute(GemmText(96, 64, 32), steps + "prefetch(t2.r0, 0, 8, 0)\n");
  EXPECT_EQ(Changed(without, with), (std::set<std::string>{"main.prefetch_lanes", "all.prefetch_lanes"}));
  EXPECT_NEAR(ValueOf(with, "main.prefetch_lanes"), std::log2(9.0), 1e-4);
}

// The statement that packs, and those around the accumulators, have slots beside the product's.
TEST(FeaturesTest, EveryStatementIsSeen) {
  const Computed c = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 4, 2, false, true));
  EXPECT_GT(ValueOf(c, "main.share"), ValueOf(c, "second.share"));
  EXPECT_GE(ValueOf(c, "second.share"), ValueOf(c, "third.share"));
  EXPECT_GT(ValueOf(c, "second.share"), 0);
  EXPECT_LE(ValueOf(c, "main.share") + ValueOf(c, "second.share") + ValueOf(c, "third.share"), 1.0001);
  EXPECT_EQ(ValueOf(c, "second.is_instruction"), 0);
  EXPECT_NEAR(ValueOf(c, "all.is_instruction"), ValueOf(c, "main.share"), 1e-4);
  // A softmax has four statements: the fourth counts in the mean.
  const Computed softmax = Compute(
      "workload s(x: f32[64,96]) -> (y: f32[64,96]) {\n"
      "  m[i]: f32[64] = max[j:96](x[i,j])\n  e[i,j]: f32[64,96] = exp(x[i,j] - m[i])\n"
      "  s[i]: f32[64] = sum[j:96](e[i,j])\n  y[i,j] = e[i,j] / s[i] }",
      "");
  double named = 0;
  for (const char* slot : {"main.share", "second.share", "third.share"}) named += ValueOf(softmax, slot);
  EXPECT_LT(named, 1);
  EXPECT_GT(ValueOf(softmax, "all.transcendental"), 0);
  EXPECT_GT(ValueOf(softmax, "all.divide"), 0);
}

TEST(FeaturesTest, SchedulesDiffer) {
  const Computed a = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 4, 2, false, true));
  const Computed b = Compute(GemmText(96, 64, 32), TiledGemmSteps(6, 16, 2, 4, false, true));
  EXPECT_NE(FunctionFeatures(a.nest, a.cost, a.machine), FunctionFeatures(b.nest, b.cost, b.machine));
}

}  // namespace
}  // namespace mycc
