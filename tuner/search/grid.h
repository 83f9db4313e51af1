// Grid search: each legal point once, in a fixed order in which every prefix covers the whole space.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/search/strategy.h"

namespace mycc {

class GridSearch : public SearchStrategy {
 public:
  GridSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;

 private:
  int64_t start_ = 0;  // a memo: the places before it have nothing new
};

}  // namespace mycc
