// Random search: the sketches' defaults, then points drawn at random. Other strategies are compared with
// it.
#pragma once

#include <vector>

#include "tuner/search/sampler.h"
#include "tuner/search/strategy.h"

namespace mycc {

class RandomSearch : public SearchStrategy {
 public:
  RandomSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;

 private:
  Scorer* const scorer_;  // refuses candidates that cannot run; its predictions are recorded, not followed
  absl::flat_hash_set<Point> dead_;
};

}  // namespace mycc
