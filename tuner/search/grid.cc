#include "tuner/search/grid.h"

#include "tuner/search/picks.h"

namespace mycc {

GridSearch::GridSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer) {}

std::vector<ProposedPoint> GridSearch::Propose(int /*generation*/, int /*visible*/) {
  const Pool::Context context = UnrankedContext();
  const Sampler sampler(sketches_);
  Picks picks(config_.generation_size, context);
  TakeByEnumeration(0, sampler, context, &picks);
  return picks.Release();
}

}  // namespace mycc
