// Chooses candidates by a model that knows decisions alone (decision_model.h): where no model knows the code,
// or where the one that does orders no better than chance. Deterministic. Thread rule: thread-compatible. No
// I/O.
#pragma once

#include <vector>

#include "tuner/search/decision_model.h"
#include "tuner/search/picks.h"
#include "tuner/search/pool.h"
#include "tuner/search/sampler.h"

namespace mycc {

class DecisionSearch {
 public:
  // The model sees the outcomes of the first `visible` generations. The rest of the candidates count as under
  // way. All references outlive the search.
  DecisionSearch(const std::vector<Sketch>& sketches, const SearchLedger& ledger, int visible,
                 const Pool::Context& context);

  // Up to `count` points that are far from each other and from all that was proposed.
  void TakeSpread(int count, Rng* rng, Picks* picks) const;
  // Up to `count` points of the greatest expected improvement, each as if those before it were under way.
  void TakePromising(int count, Rng* rng, Picks* picks);

 private:
  struct Option {
    DecisionModel::Opinion opinion;
    Point point;
    Origin origin;
    bool gone = false;
  };
  using Points = std::vector<std::pair<Point, Origin>>;

  void Fit(const Picks& picks);
  // One for each point; a point that cannot be proposed has none.
  std::vector<std::optional<Guess>> GuessesOf(const Points& points) const;
  Points FirstPoints(Rng* rng) const;
  // The points that the model expects to be fastest, of the whole space where it is not large, and otherwise
  // of many random ones.
  Points ExpectedFastest(Rng* rng) const;
  // Adds those that are new.
  void AddOptions(const Points& points);
  // Adds the neighbours of the most promising options.
  void Climb();
  bool TakeBest(Picks* picks);
  double DistanceToProposed(const Point& point, const Picks& picks) const;

  const std::vector<Sketch>& sketches_;
  const SearchLedger& ledger_;
  const int visible_;
  const Pool::Context& context_;
  const Sampler sampler_;
  absl::flat_hash_set<Point> known_;  // proposed before, or among the options
  DecisionModel model_;
  std::vector<Option> options_;
};

}  // namespace mycc
