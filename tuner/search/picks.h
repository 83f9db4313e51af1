// The generation under construction. Strategies take candidates into it from pools until it is full. It
// refuses those that are lowered to the code of another candidate, or that cannot be lowered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tuner/search/pool.h"
#include "tuner/search/sampler.h"
#include "tuner/search/strategy.h"

namespace mycc {

class Picks {
 public:
  // `context` outlives it.
  Picks(int capacity, const Pool::Context& context) : capacity_(capacity), context_(context) {}

  bool full() const { return size() >= capacity_; }
  int size() const { return static_cast<int>(proposals_.size()); }
  // False when the generation is full, or holds the same steps or code, or the member or its code was
  // proposed in an earlier one.
  bool Take(const Member& member);
  // Calls `take`, which takes members into its argument, twice: on a copy that counts every code as new,
  // whose codes are then computed together, and on the picks themselves. REQUIRES: `take` changes nothing but
  // its argument, apart from memos.
  void TakeWithPrefetch(const std::function<void(Picks*)>& take);

  // The distance to the closest pick: the number of different decisions; all of them for another sketch.
  int Distance(const Point& point) const;

  const std::vector<ProposedPoint>& proposals() const { return proposals_; }
  std::vector<ProposedPoint> Release() { return std::move(proposals_); }

 private:
  // Whether the code of the trace is new; says why not.
  bool HasNewCode(const std::string& trace);

  const int capacity_;
  const Pool::Context& context_;
  bool rehearses_ = false;  // a copy that counts every code as new
  std::vector<ProposedPoint> proposals_;
  absl::flat_hash_set<std::string> steps_, codes_;
};

// Takes up to `count` random points that are new, whatever their expected seconds.
void TakeRandom(int count, const Sampler& sampler, const Pool::Context& context, Rng* rng, Picks* picks);

inline constexpr int64_t kMostPlacesLooked = int64_t{1} << 20;  // by one enumeration

// Fills the generation with what an enumeration of the space still finds new. When it comes back short, the
// space is exhausted (or nothing new is among the first million places of a space that large). Returns the
// place where the enumeration stopped, counted from `start`.
int64_t TakeByEnumeration(int64_t start, const Sampler& sampler, const Pool::Context& context, Picks* picks);

}  // namespace mycc
