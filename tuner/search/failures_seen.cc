#include "tuner/search/failures_seen.h"

#include <algorithm>

namespace mycc {

FailuresSeen::FailuresSeen(const SearchLedger& ledger, int visible) {
  for (int g = 0; g < std::min(visible, ledger.generations()); ++g) {
    for (const SearchLedger::Entry& entry : ledger.generation(g)) {
      if (!entry.outcome || entry.outcome->given_up()) continue;
      const Point& point = entry.candidate.point;
      const int succeeded = entry.outcome->ok() ? 1 : 0;
      const auto add = [succeeded](Count* count) {
        ++count->measured;
        count->succeeded += succeeded;
      };
      add(&all_);
      for (size_t d = 0; d < point.choice.size(); ++d) add(&counts_[{point.sketch, d, point.choice[d]}]);
    }
  }
}

double FailuresSeen::Success(const Point& point) const {
  constexpr double kPrior = 2;  // candidates
  const int failures = all_.measured - all_.succeeded;
  if (failures == 0 || failures >= kMost) return 1;
  const double usual = static_cast<double>(all_.succeeded) / all_.measured;
  double least = 1;
  for (size_t d = 0; d < point.choice.size(); ++d) {
    const auto found = counts_.find(Chosen{point.sketch, d, point.choice[d]});
    const Count count = found == counts_.end() ? Count() : found->second;
    least = std::min(least, (count.succeeded + kPrior * usual) / (count.measured + kPrior));
  }
  return least;
}

}  // namespace mycc
