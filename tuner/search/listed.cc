#include "tuner/search/listed.h"

#include <string>

#include "absl/container/flat_hash_set.h"

namespace mycc {

ListedSearch::ListedSearch(const SearchConfig& config, std::vector<Trace> traces)
    : SearchStrategy(config, {}, /*scorer=*/nullptr) {
  absl::flat_hash_set<std::string> known;
  for (Trace& trace : traces) {
    std::string key = StepsKey(trace);
    if (known.insert(key).second) traces_.emplace_back(std::move(key), std::move(trace));
  }
}

std::vector<ProposedPoint> ListedSearch::Propose(int /*generation*/, int /*visible*/) {
  std::vector<ProposedPoint> proposals;
  for (const auto& [key, trace] : traces_) {
    if (static_cast<int>(proposals.size()) == config_.generation_size) break;
    if (ledger().Proposed(key)) continue;
    ProposedPoint& proposal = proposals.emplace_back();
    proposal.candidate.trace = PrintTrace(trace);
    proposal.candidate.origin = Origin::kHistory;
    proposal.steps_key = key;
  }
  return proposals;
}

std::optional<Point> ListedSearch::PointOfRecorded(const Trace& /*trace*/) const { return Point(); }

}  // namespace mycc
