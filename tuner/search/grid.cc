#include "tuner/search/grid.h"

#include "tuner/search/picks.h"

namespace mycc {

GridSearch::GridSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer) {}

std::vector<ProposedPoint> GridSearch::Propose(int /*generation*/, int /*visible*/) {
  const Pool::Context context = UnrankedContext();
  const Sampler sampler(sketches_);
  Picks picks(config_.generation_size, context);
  TakeByEnumeration(Start(sampler), sampler, context, &picks);
  return picks.Release();
}

// A function of the ledger, also after a restart: a point that was refused for the code of a candidate that
// KnownCodes has forgotten since does not come again.
int64_t GridSearch::Start(const Sampler& sampler) {
  for (; known_ < ledger().generations(); ++known_) {
    for (const SearchLedger::Entry& entry : ledger().generation(known_)) {
      if (entry.candidate.trace.empty()) continue;  // lost
      bool found = false;
      const int64_t looked = sampler.Enumerate(start_, kMostPlacesLooked, [&](const Point& point) {
        found = point == entry.candidate.point;
        return !found;
      });
      if (found) start_ += looked;
    }
  }
  return start_;
}

}  // namespace mycc
