// Drives a search as a farm of workers does, for tests.
#pragma once

#include <deque>
#include <vector>

#include "gtest/gtest.h"
#include "tuner/search/rng.h"
#include "tuner/search/strategy.h"

namespace mycc {

// A farm: `workers` candidates are under way at a time and end in an order drawn from `seed`; generations are
// asked for as soon as they can be, until there are `generations` or the space is exhausted. Returns them.
// `measure` gives a candidate's outcome.
template <typename Measure>
std::vector<std::vector<Candidate>> RunFarm(SearchStrategy* search, int generations, int workers,
                                            uint64_t seed, const Measure& measure) {
  Rng rng(seed);
  std::vector<std::vector<Candidate>> asked;
  std::deque<Candidate> queue;
  std::vector<Candidate> running;
  const auto open = [&] { return static_cast<int>(asked.size()) < generations && !search->Exhausted(); };
  while (open() || !queue.empty() || !running.empty()) {
    while (open() && search->Ready() && static_cast<int>(queue.size()) < workers) {
      asked.push_back(*search->Ask());
      queue.insert(queue.end(), asked.back().begin(), asked.back().end());
    }
    while (!queue.empty() && static_cast<int>(running.size()) < workers) {
      running.push_back(queue.front());
      queue.pop_front();
    }
    if (running.empty()) continue;
    const int ended = rng.Below(static_cast<int>(running.size()));
    EXPECT_TRUE(search->Tell({measure(running[ended])}).ok());
    running.erase(running.begin() + ended);
  }
  return asked;
}

}  // namespace mycc
