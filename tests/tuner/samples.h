// Made-up samples from which the learned model can learn something, for its tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tuner/cost/sample.h"
#include "tuner/search/rng.h"

namespace mycc {

// Candidates whose true time is the analytic one times a function of three features out of `width`; each task
// has a factor of its own.
inline std::vector<Sample> MakeSamples(int groups, int per_group, uint64_t seed, size_t width = 10) {
  Rng rng(seed);
  std::vector<Sample> samples;
  for (int g = 0; g < groups; ++g) {
    const double task = 0.5 + rng.Unit();
    for (int i = 0; i < per_group; ++i) {
      Sample sample;
      for (size_t f = 0; f < width; ++f) sample.features.push_back(static_cast<float>(rng.Unit()));
      const auto& x = sample.features;
      sample.analytic_seconds = 1e-3 * (1 + rng.Unit());
      const double truth = std::exp(1.5 * x[0] - (x[1] > 0.5 ? 0.8 : 0) + x[0] * x[2] + 0.02 * rng.Unit());
      sample.seconds = sample.analytic_seconds * task * truth;
      sample.group = "task" + std::to_string(g);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

}  // namespace mycc
