#include "tuner/cost/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace mycc {
namespace {

using Rows = std::vector<const Predicted*>;

// The indices of the k smallest values.
template <typename Key>
std::set<size_t> Smallest(const Rows& rows, size_t k, const Key& key) {
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return key(*rows[a]) < key(*rows[b]); });
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)};
}

double Recall(const Rows& rows) {
  const size_t k = std::max<size_t>(1, rows.size() / 10);
  const auto best = Smallest(rows, k, [](const Predicted& p) { return p.measured; });
  const auto predicted = Smallest(rows, k, [](const Predicted& p) { return p.predicted; });
  return static_cast<double>(
             std::count_if(best.begin(), best.end(), [&](size_t i) { return predicted.count(i) > 0; })) /
         static_cast<double>(k);
}

}  // namespace

OrderMetrics EvaluateOrder(const std::vector<Predicted>& rows) {
  std::map<std::string, Rows> groups;
  for (const Predicted& row : rows) groups[row.group].push_back(&row);
  OrderMetrics metrics;
  double pairs = 0, right = 0, recall = 0, squares = 0;
  int compared = 0;
  for (const auto& [name, group] : groups) {
    if (group.size() < 2) continue;
    ++compared;
    metrics.rows += static_cast<int>(group.size());
    recall += Recall(group);
    double error = 0;
    for (const Predicted* row : group)
      error += (row->predicted - row->measured) / static_cast<double>(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
      squares += std::pow(group[i]->predicted - group[i]->measured - error, 2);
      for (size_t j = i + 1; j < group.size(); ++j) {
        const double measured = group[i]->measured - group[j]->measured,
                     predicted = group[i]->predicted - group[j]->predicted;
        if (measured == 0) continue;
        pairs += 1;
        right += predicted == 0 ? 0.5 : (measured < 0) == (predicted < 0) ? 1 : 0;
      }
    }
  }
  if (compared == 0) return metrics;
  metrics.pairwise_accuracy = pairs > 0 ? right / pairs : 0.5;
  metrics.recall_at_k = recall / compared;
  metrics.rmse = std::sqrt(squares / metrics.rows);
  return metrics;
}

}  // namespace mycc
