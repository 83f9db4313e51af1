// The tables of feature slots behind features.h: each slot has a name and a function over a block or access.
#pragma once

#include <span>

#include "tuner/cost/analytic.h"
#include "tuner/cost/nest.h"

namespace mycc {

struct FunctionView {
  const FunctionNest& nest;
  const Cost& cost;
  const Machine& machine;
};

struct BlockView {
  const FunctionView& function;
  const NestBlock& nest;
  const BlockCost& cost;
};

struct AccessView {
  const BlockView& block;
  const NestAccess& access;
};

template <typename View>
struct Slot {
  const char* name;
  const char* meaning;
  double (*compute)(const View&);
};

std::span<const Slot<FunctionView>> FunctionSlots();
std::span<const Slot<BlockView>> BlockSlots();
std::span<const Slot<BlockView>> MarkSlots();  // of a block as well (mark_slots.cc)
std::span<const Slot<AccessView>> AccessSlots();

// Statements of a function that have slots of their own, in order of their share of the analytic time.
inline constexpr int kStatementsWithSlots = 3;
// Buffers of the most expensive statement that have slots, in order of the bytes they move; the written one
// first.
inline constexpr int kAccessesWithSlots = 5;

// The arithmetic intensity (operations per byte touched) of the inner part of a block's loops, sampled where
// the inner part does 1, 2^k, 2^2k, ... of all its instances.
inline constexpr int kCurvePoints = 8;
double IntensityAt(const BlockView& block, int point);

}  // namespace mycc
