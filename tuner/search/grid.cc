#include "tuner/search/grid.h"

#include "tuner/search/picks.h"

namespace mycc {

GridSearch::GridSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer) {}

std::vector<ProposedPoint> GridSearch::Propose(int /*generation*/, int /*visible*/) {
  const Pool::Context context = UnrankedContext();
  const Sampler sampler(sketches_);
  Picks picks(config_.generation_size, context);
  const int64_t stopped = TakeByEnumeration(start_, sampler, context, &picks);
  if (wanted() == config_.generation_size) start_ = stopped;
  return picks.Release();
}

}  // namespace mycc
