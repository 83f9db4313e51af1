// The features of a schedule: the vector of numbers from which the learned model predicts. Each slot is a row
// of a table (feature_slots.cc, mark_slots.cc). A block has one vector; a function's has a fixed width: its
// own slots, those of its most expensive statements, each with its share of the analytic time, and the mean
// of all statements by that share. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "tuner/cost/analytic.h"
#include "tuner/cost/nest.h"

namespace mycc {

using Features = std::vector<float>;

// Raised whenever a slot changes its meaning: models and stored features of another version are not used.
inline constexpr int kFeatureVersion = 4;

struct FeatureSlot {
  std::string name;     // "main.buf1.traffic_l2"
  std::string meaning;  // "log2 bytes brought into L1 by this buffer"
};
const std::vector<FeatureSlot>& BlockFeatureSlots();
const std::vector<FeatureSlot>& FunctionFeatureSlots();

// `cost` is of this nest on this machine.
Features BlockFeatures(const FunctionNest& nest, const Cost& cost, const Machine& machine, int block);
Features FunctionFeatures(const FunctionNest& nest, const Cost& cost, const Machine& machine);

}  // namespace mycc
