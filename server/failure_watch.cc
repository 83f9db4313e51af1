#include "server/failure_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr size_t kLatestOutcomes = 32;  // outcomes of a device
constexpr int64_t kFewest = 6;          // of a device, and of the others, before it is judged
constexpr double kNoChance = 1e-4;      // it is judged with each of its failures, and so is everybody else
constexpr int64_t kUsualShare = 10;     // failures are usual from one in ten on
constexpr size_t kMostLines = 256;

double LogChoose(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t i) { return std::lgamma(static_cast<double>(i) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

double ChanceOf(int64_t failures, int64_t trials, int64_t all_failures, int64_t all_trials) {
  double chance = 0;
  for (int64_t i = failures; i <= std::min(trials, all_failures); ++i) {
    if (trials - i > all_trials - all_failures) continue;
    chance += std::exp(LogChoose(all_failures, i) + LogChoose(all_trials - all_failures, trials - i) -
                       LogChoose(all_trials, trials));
  }
  return std::min(chance, 1.0);
}

FailureWatch::Counts FailureWatch::CountsOf(const std::deque<bool>& outcomes) {
  const auto ok = std::ranges::count(outcomes, true);
  return {static_cast<int64_t>(outcomes.size()), static_cast<int64_t>(outcomes.size()) - ok};
}

void FailureWatch::Add(const std::string& line, const Source& source, bool ok) {
  if (lines_.size() >= kMostLines && !lines_.contains(line)) {
    lines_.erase(std::ranges::min_element(
        lines_, [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  Line& known = lines_[line];
  known.used = ++uses_;
  std::deque<bool>& outcomes = known.outcomes[source];
  outcomes.push_back(ok);
  if (outcomes.size() > kLatestOutcomes) outcomes.pop_front();
}

FailureWatch::Counts FailureWatch::RestOf(const Line& line, const Source& source) {
  Counts others, siblings;
  for (const auto& [other, outcomes] : line.outcomes) {
    if (other.worker == source.worker && other.device == source.device) continue;
    const Counts counts = CountsOf(outcomes);
    Counts& sum = other.worker == source.worker ? siblings : others;
    sum.trials += counts.trials;
    sum.failures += counts.failures;
  }
  return others.trials > 0 ? others : siblings;
}

bool FailureWatch::IsUsualElsewhere(const std::string& line, const Source& source) const {
  const auto known = lines_.find(line);
  if (known == lines_.end()) return false;
  const Counts rest = RestOf(known->second, source);
  return rest.trials >= kFewest && rest.failures * kUsualShare >= rest.trials;
}

std::string FailureWatch::Verdict(const std::string& line, const Source& source) const {
  const auto known = lines_.find(line);
  if (known == lines_.end() || !known->second.outcomes.contains(source)) return "";
  const Counts own = CountsOf(known->second.outcomes.at(source)), rest = RestOf(known->second, source);
  if (own.trials < kFewest || rest.trials < kFewest) return "";
  if (ChanceOf(own.failures, own.trials, own.failures + rest.failures, own.trials + rest.trials) > kNoChance)
    return "";
  return absl::StrCat(own.failures, " of its last ", own.trials, " trials failed, and ", rest.failures,
                      " of ", rest.trials, " elsewhere");
}

}  // namespace mycc
