#include "tuner/search/search_ledger.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {

std::string_view OriginName(Origin origin) {
  constexpr std::string_view kNames[] = {"default", "history", "random",    "mutation", "crossover",
                                         "descent", "grid",    "surrogate", "start"};
  return kNames[static_cast<int>(origin)];
}

std::string StepsKey(const Trace& trace) { return PrintSteps(trace); }

int SearchLedger::complete() const {
  int complete = 0;
  for (const auto& generation : generations_) {
    for (const Entry& entry : generation) {
      if (!entry.outcome) return complete;
    }
    ++complete;
  }
  return complete;
}

std::vector<const SearchLedger::Entry*> SearchLedger::Fastest(int visible) const {
  std::vector<const Entry*> entries;
  for (int g = 0; g < std::min(visible, generations()); ++g) {
    for (const Entry& entry : generations_[g]) {
      if (entry.outcome && entry.outcome->ok()) entries.push_back(&entry);
    }
  }
  std::ranges::stable_sort(
      entries, [](const Entry* a, const Entry* b) { return *a->outcome->seconds < *b->outcome->seconds; });
  return entries;
}

const SearchLedger::Entry* SearchLedger::best() const {
  const auto entries = Fastest(generations());
  return entries.empty() ? nullptr : entries.front();
}

void SearchLedger::Add(std::vector<Candidate> generation, const std::vector<std::string>& steps_keys) {
  MYCC_CHECK(generation.size() == steps_keys.size()) << "one key for each candidate";
  std::vector<Entry> entries;
  for (size_t i = 0; i < generation.size(); ++i) {
    const bool fresh = proposed_.insert(steps_keys[i]).second;
    MYCC_CHECK(fresh) << "candidate proposed twice:\n" << generation[i].trace;
    entries.push_back({std::move(generation[i]), std::nullopt});
  }
  num_candidates_ += static_cast<int64_t>(entries.size());
  generations_.push_back(std::move(entries));
}

absl::Status SearchLedger::Tell(const Outcome& outcome) {
  const std::string name = absl::StrCat("candidate ", outcome.generation, "/", outcome.index);
  if (outcome.generation >= generations_.size() || outcome.index >= generations_[outcome.generation].size()) {
    return absl::InvalidArgumentError(absl::StrCat("outcome of ", name, ": it was never proposed"));
  }
  if (outcome.ok() && !(std::isfinite(*outcome.seconds) && *outcome.seconds > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("outcome of ", name, ": ", *outcome.seconds,
                                                   " seconds; expected a positive, finite time"));
  }
  std::optional<Outcome>& known = generations_[outcome.generation][outcome.index].outcome;
  if (known && *known != outcome) {
    return absl::InvalidArgumentError(absl::StrCat("outcome of ", name, ": another one is known already"));
  }
  known = outcome;
  return absl::OkStatus();
}

}  // namespace mycc
