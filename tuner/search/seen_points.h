// The points that a generation may know: those that were proposed, with the outcomes that are visible. Built
// anew for each generation from the ledger. Thread rule: a value.
#pragma once

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

class SeenPoints {
 public:
  // The candidates of all generations, the outcomes of the first `visible` ones.
  SeenPoints(const SearchLedger& ledger, int visible);

  bool Proposed(const Point& point) const { return outcomes_.contains(point); }
  // Seconds of a visible outcome, infinity for a failure; nullopt for a point whose outcome is not visible.
  std::optional<double> Seconds(const Point& point) const;

 private:
  absl::flat_hash_map<Point, std::optional<double>> outcomes_;
};

// The same of one entry of generation `generation`.
std::optional<double> VisibleSeconds(const SearchLedger::Entry& entry, int generation, int visible);

}  // namespace mycc
