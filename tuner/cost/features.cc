#include "tuner/cost/features.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/cost/feature_slots.h"

namespace mycc {
namespace {

constexpr const char* kStatementNames[kStatementsWithSlots] = {"main", "second", "third"};

std::vector<FeatureSlot> MakeStatementSlots() {
  std::vector<FeatureSlot> slots;
  for (const auto& table : {BlockSlots(), MarkSlots()}) {
    for (const auto& slot : table) slots.push_back({slot.name, slot.meaning});
  }
  return slots;
}

std::vector<FeatureSlot> MakeBlockSlots() {
  std::vector<FeatureSlot> slots = MakeStatementSlots();
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
  for (int s = 0; s < kStatementsWithSlots; ++s) {
    slots.push_back({absl::StrCat(kStatementNames[s], ".share"), "its share of the analytic cycles"});
    for (const FeatureSlot& slot : s == 0 ? MakeBlockSlots() : MakeStatementSlots())
      slots.push_back({absl::StrCat(kStatementNames[s], ".", slot.name), slot.meaning});
  }
  for (const FeatureSlot& slot : MakeStatementSlots()) {
    slots.push_back({absl::StrCat("all.", slot.name),
                     absl::StrCat("mean over all statements, by cycles: ", slot.meaning)});
  }
  return slots;
}

// The written access, then the others by the bytes they touch.
std::vector<const NestAccess*> Ordered(const NestBlock& nest) {
  std::vector<const NestAccess*> accesses;
  for (const NestAccess& access : nest.accesses) accesses.push_back(&access);
  std::ranges::stable_sort(accesses, [](const NestAccess* a, const NestAccess* b) {
    if (a->write != b->write) return a->write;
    return a->line_bytes[0] > b->line_bytes[0];
  });
  return accesses;
}

void AppendBlockSlots(const BlockView& view, Features* features) {
  for (const auto& table : {BlockSlots(), MarkSlots()}) {
    for (const auto& slot : table) features->push_back(static_cast<float>(slot.compute(view)));
  }
}

void AppendAccesses(const BlockView& view, Features* features) {
  for (int i = 0; i < kCurvePoints; ++i) features->push_back(static_cast<float>(IntensityAt(view, i)));
  const auto accesses = Ordered(view.nest);
  for (size_t i = 0; i < kAccessesWithSlots; ++i) {
    for (const auto& slot : AccessSlots()) {
      features->push_back(
          i < accesses.size() ? static_cast<float>(slot.compute(AccessView{view, *accesses[i]})) : 0.0f);
    }
  }
}

// The blocks that run in a call, the most expensive first. The blocks of a launch on tensor cores have equal
// cycles: among them the product is first.
std::vector<int> ByCycles(const FunctionNest& nest, const Cost& cost) {
  std::vector<int> running;
  for (size_t b = 0; b < nest.blocks.size(); ++b) {
    if (!nest.blocks[b].ahead_of_time) running.push_back(static_cast<int>(b));
  }
  if (running.empty()) running.push_back(0);
  const auto work = [&](int b) { return nest.blocks[b].ops.arithmetic() * nest.blocks[b].instances(); };
  std::ranges::stable_sort(running, [&](int a, int b) {
    const double of_a = cost.blocks[a].cycles, of_b = cost.blocks[b].cycles;
    return of_a != of_b ? of_a > of_b : work(a) > work(b);
  });
  return running;
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
  const BlockView view{function, nest.blocks[block], cost.blocks[block]};
  Features features;
  features.reserve(BlockFeatureSlots().size());
  AppendBlockSlots(view, &features);
  AppendAccesses(view, &features);
  return features;
}

Features FunctionFeatures(const FunctionNest& nest, const Cost& cost, const Machine& machine) {
  MYCC_CHECK(!nest.blocks.empty()) << "a function without blocks";
  const FunctionView function{nest, cost, machine};
  const std::vector<int> running = ByCycles(nest, cost);
  double cycles = 0;
  for (const int b : running) cycles += cost.blocks[b].cycles;

  Features features;
  features.reserve(FunctionFeatureSlots().size());
  for (const auto& slot : FunctionSlots()) features.push_back(static_cast<float>(slot.compute(function)));
  std::vector<double> mean(BlockSlots().size() + MarkSlots().size(), 0.0);
  for (size_t s = 0; s < running.size(); ++s) {
    const int b = running[s];
    const double share =
        cycles > 0 ? cost.blocks[b].cycles / cycles : 1.0 / static_cast<double>(running.size());
    const BlockView view{function, nest.blocks[b], cost.blocks[b]};
    Features of_statement;
    of_statement.reserve(mean.size());
    AppendBlockSlots(view, &of_statement);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * of_statement[i];
    if (s >= kStatementsWithSlots) continue;
    features.push_back(static_cast<float>(share));
    features.insert(features.end(), of_statement.begin(), of_statement.end());
    if (s == 0) AppendAccesses(view, &features);
  }
  features.resize(FunctionFeatureSlots().size() - mean.size());  // 0 for statements that are not there
  for (const double value : mean) features.push_back(static_cast<float>(value));
  return features;
}

}  // namespace mycc
