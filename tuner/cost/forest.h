// A random forest as a classifier, by XGBoost: Breiman, "Random Forests" (Machine Learning, 2001). Each tree
// sees a random part of the rows, each split a random part of the columns; the answer is the mean of the
// trees' leaves. One thread and a fixed seed: the same tables give the same answer, bit for bit. Thread rule:
// immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/search/classifier.h"

namespace mycc {

struct ForestConfig {
  uint64_t seed = 0;
  int trees = 64;
  int depth = 8;
};

class Forest final : public Classifier {
 public:
  explicit Forest(const ForestConfig& config = {}) : config_(config) {}

  std::vector<double> Classify(const NumberTable& known, const std::vector<float>& labels,
                               const std::vector<float>& weights, const NumberTable& asked) override;

 private:
  const ForestConfig config_;
};

}  // namespace mycc
