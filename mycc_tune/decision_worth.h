// The worth of the decisions of a job's schedules: for each value of a decision, the best time among the
// candidates that have it and among those that have another. Pure functions of the results, whatever their
// order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mycc {

struct DecidedCandidate {
  uint32_t task = 0;
  std::string sketch;                        // counts as a decision of its own
  std::map<std::string, int64_t> decisions;  // by name
  double seconds = 0;                        // of a valid result; 0: it failed
};

struct DecisionValue {
  std::string value;
  int64_t candidates = 0, failed = 0;  // that have it
  double best_seconds = 0;             // of them; 0: none is valid
  double best_without_seconds = 0;     // of the task's others; 0: none is valid
};

struct DecisionWorth {
  uint32_t task = 0;
  std::string decision;  // "sketch", or a decision's name
  std::string chosen;    // the value of the task's fastest candidate; empty: that has no such decision
  // How many times as long the fastest candidate without that value takes; 0: unknown.
  double without = 0;
  std::vector<DecisionValue> values;  // the fastest first, those without a valid result last
};

// The decisions that took two values or more, by task; within a task those that were worth most come first,
// ties in the order of their names.
std::vector<DecisionWorth> WorthOfDecisions(const std::vector<DecidedCandidate>& candidates);

}  // namespace mycc
