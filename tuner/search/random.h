// Random search: the sketches' defaults, then points drawn at random. Other strategies are compared with
// it. Predictions are recorded, not followed.
#pragma once

#include <vector>

#include "tuner/search/strategy.h"

namespace mycc {

class RandomSearch : public SearchStrategy {
 public:
  RandomSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;
};

}  // namespace mycc
