// Grid search: each legal point once, in a fixed order in which every prefix covers the whole space.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/search/sampler.h"
#include "tuner/search/strategy.h"

namespace mycc {

class GridSearch : public SearchStrategy {
 public:
  GridSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;

 private:
  // The place behind the latest candidate's: those before it were proposed, or refused for good.
  int64_t Start(const Sampler& sampler);

  int64_t start_ = 0;  // of the first `known_` generations
  int known_ = 0;
};

}  // namespace mycc
