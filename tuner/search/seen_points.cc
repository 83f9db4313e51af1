#include "tuner/search/seen_points.h"

#include <limits>

namespace mycc {

std::optional<double> VisibleSeconds(const SearchLedger::Entry& entry, int generation, int visible) {
  if (generation >= visible || !entry.outcome) return std::nullopt;
  return entry.outcome->seconds.value_or(std::numeric_limits<double>::infinity());
}

SeenPoints::SeenPoints(const SearchLedger& ledger, int visible) {
  for (int g = 0; g < ledger.generations(); ++g) {
    for (const SearchLedger::Entry& entry : ledger.generation(g)) {
      if (entry.candidate.trace.empty()) continue;  // lost: its point is not known
      outcomes_.emplace(entry.candidate.point, VisibleSeconds(entry, g, visible));
    }
  }
}

std::optional<double> SeenPoints::Seconds(const Point& point) const {
  const auto known = outcomes_.find(point);
  return known == outcomes_.end() ? std::nullopt : known->second;
}

}  // namespace mycc
