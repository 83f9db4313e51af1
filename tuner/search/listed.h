// The strategy `listed`: exactly the traces that were given, in their order, and then the end. It measures
// schedules again, such as those of other people's records. The traces need not be of this build's sketches.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tuner/search/strategy.h"

namespace mycc {

class ListedSearch : public SearchStrategy {
 public:
  // The first of traces with the same steps is a candidate.
  ListedSearch(const SearchConfig& config, std::vector<Trace> traces);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;
  std::optional<Point> PointOfRecorded(const Trace& trace) const override;

 private:
  std::vector<std::pair<std::string, Trace>> traces_;  // with the texts of their steps
};

}  // namespace mycc
