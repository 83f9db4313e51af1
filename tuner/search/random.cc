#include "tuner/search/random.h"

#include "tuner/search/picks.h"

namespace mycc {

RandomSearch::RandomSearch(const SearchConfig& config, std::vector<Sketch> sketches, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer) {}

std::vector<ProposedPoint> RandomSearch::Propose(int generation, int /*visible*/) {
  const Pool::Context context = UnrankedContext();
  const Sampler sampler(sketches_);
  Rng rng(config_.seed, static_cast<uint64_t>(generation));
  Picks picks(config_.generation_size, context);
  if (generation == 0) {
    for (size_t s = 0; s < sketches_.size(); ++s) {
      Pool pool(context);
      pool.Add({{{static_cast<int>(s), sketches_[s].default_choice}, Origin::kDefault}});
      for (const Member& member : pool.members()) picks.Take(member);
    }
  }
  TakeRandom(config_.generation_size - picks.size(), sampler, context, &rng, &picks);
  TakeByEnumeration(0, sampler, context, &picks);
  return picks.Release();
}

}  // namespace mycc
