#include "tuner/search/trust.h"

#include <cmath>
#include <map>
#include <utility>

#include "tuner/search/pair_order.h"

namespace mycc {

bool PredictionsLead(const std::vector<const SearchLedger::Entry*>& measured) {
  constexpr size_t kEnough = 8;
  constexpr double kChance = 0.53;
  std::map<uint64_t, std::vector<std::pair<double, double>>> rows_of;  // by model
  size_t predicted = 0;
  for (const SearchLedger::Entry* entry : measured) {
    const Candidate& candidate = entry->candidate;
    if (!candidate.predicted_seconds || !candidate.model) continue;
    rows_of[*candidate.model].emplace_back(*candidate.predicted_seconds, *entry->outcome->seconds);
    ++predicted;
  }
  if (predicted < kEnough) return true;
  PairOrder order;
  for (const auto& [model, rows] : rows_of) {
    const PairOrder of_model = CountPairs(rows);
    order.right += of_model.right;
    order.pairs += of_model.pairs;
  }
  return order.right >= kChance * order.pairs;
}

double PredictionScale(const std::vector<const SearchLedger::Entry*>& measured, Scorer* scorer) {
  std::vector<Trace> traces;
  std::vector<double> seconds;
  for (const SearchLedger::Entry* entry : measured) {
    absl::StatusOr<Trace> trace = ParseTrace(entry->candidate.trace);
    if (!trace.ok()) continue;
    traces.push_back(*std::move(trace));
    seconds.push_back(*entry->outcome->seconds);
  }
  std::vector<const Trace*> asked;
  for (const Trace& trace : traces) asked.push_back(&trace);
  const std::vector<absl::StatusOr<Prediction>> predictions = scorer->Score(asked);
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!predictions[i].ok()) continue;
    sum += std::log(predictions[i]->seconds / seconds[i]);
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / count);
}

}  // namespace mycc
