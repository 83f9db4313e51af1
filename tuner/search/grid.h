// Grid search: each legal point once, in a fixed order in which every prefix covers the whole space.
#pragma once

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
  Scorer* const scorer_;  // refuses candidates that cannot run
  absl::flat_hash_set<Point> dead_;
};

}  // namespace mycc
