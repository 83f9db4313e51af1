#include "tuner/cost/features.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/cost/feature_slots.h"

namespace mycc {
namespace {

std::vector<FeatureSlot> MakeBlockSlots() {
  std::vector<FeatureSlot> slots;
  for (const auto& slot : BlockSlots()) slots.push_back({slot.name, slot.meaning});
  for (int i = 0; i < kCurvePoints; ++i) {
    slots.push_back(
        {absl::StrCat("intensity", i),
         "log2 operations per byte touched by an inner part of the loops, larger with the number"});
  }
  for (int i = 0; i < kAccessesWithSlots; ++i) {
    for (const auto& slot : AccessSlots())
      slots.push_back({absl::StrCat("buf", i, ".", slot.name), slot.meaning});
  }
  return slots;
}

std::vector<FeatureSlot> MakeFunctionSlots() {
  std::vector<FeatureSlot> slots;
  for (const auto& slot : FunctionSlots()) slots.push_back({slot.name, slot.meaning});
  for (const FeatureSlot& slot : BlockFeatureSlots())
    slots.push_back({absl::StrCat("main.", slot.name), slot.meaning});
  for (const auto& slot : BlockSlots()) {
    slots.push_back(
        {absl::StrCat("rest.", slot.name), absl::StrCat("of the other blocks, by cost: ", slot.meaning)});
  }
  return slots;
}

// The written access, then the others by the bytes they touch.
std::vector<const NestAccess*> Ordered(const NestBlock& nest) {
  std::vector<const NestAccess*> accesses;
  for (const NestAccess& access : nest.accesses) accesses.push_back(&access);
  std::stable_sort(accesses.begin(), accesses.end(), [](const NestAccess* a, const NestAccess* b) {
    if (a->write != b->write) return a->write;
    return a->line_bytes[0] > b->line_bytes[0];
  });
  return accesses;
}

void AppendBlockSlots(const BlockView& view, Features* features) {
  for (const auto& slot : BlockSlots()) features->push_back(static_cast<float>(slot.compute(view)));
}

void AppendBlock(const BlockView& view, Features* features) {
  AppendBlockSlots(view, features);
  for (int i = 0; i < kCurvePoints; ++i) features->push_back(static_cast<float>(IntensityAt(view, i)));
  const auto accesses = Ordered(view.nest);
  for (size_t i = 0; i < kAccessesWithSlots; ++i) {
    for (const auto& slot : AccessSlots()) {
      features->push_back(
          i < accesses.size() ? static_cast<float>(slot.compute(AccessView{view, *accesses[i]})) : 0.0f);
    }
  }
}

}  // namespace

const std::vector<FeatureSlot>& BlockFeatureSlots() {
  static const auto& slots = *new std::vector<FeatureSlot>(MakeBlockSlots());
  return slots;
}

const std::vector<FeatureSlot>& FunctionFeatureSlots() {
  static const auto& slots = *new std::vector<FeatureSlot>(MakeFunctionSlots());
  return slots;
}

Features BlockFeatures(const FunctionNest& nest, const Cost& cost, const Machine& machine, int block) {
  const FunctionView function{nest, cost, machine};
  Features features;
  features.reserve(BlockFeatureSlots().size());
  AppendBlock({function, nest.blocks[block], cost.blocks[block]}, &features);
  return features;
}

Features FunctionFeatures(const FunctionNest& nest, const Cost& cost, const Machine& machine) {
  MYCC_CHECK(!nest.blocks.empty()) << "a function without blocks";
  const FunctionView function{nest, cost, machine};
  std::vector<int> running;
  for (size_t b = 0; b < nest.blocks.size(); ++b) {
    if (!nest.blocks[b].ahead_of_time) running.push_back(static_cast<int>(b));
  }
  if (running.empty()) running.push_back(0);
  const int main = *std::max_element(running.begin(), running.end(), [&](int a, int b) {
    return cost.blocks[a].cycles < cost.blocks[b].cycles;
  });

  Features features;
  features.reserve(FunctionFeatureSlots().size());
  for (const auto& slot : FunctionSlots()) features.push_back(static_cast<float>(slot.compute(function)));
  AppendBlock({function, nest.blocks[main], cost.blocks[main]}, &features);
  std::vector<double> rest(BlockSlots().size(), 0.0);
  double cycles = 0;
  for (const int b : running) {
    if (b == main) continue;
    Features of_block;
    AppendBlockSlots({function, nest.blocks[b], cost.blocks[b]}, &of_block);
    for (size_t i = 0; i < rest.size(); ++i) rest[i] += cost.blocks[b].cycles * of_block[i];
    cycles += cost.blocks[b].cycles;
  }
  for (const double sum : rest) features.push_back(cycles > 0 ? static_cast<float>(sum / cycles) : 0.0f);
  return features;
}

}  // namespace mycc
