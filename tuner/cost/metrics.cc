#include "tuner/cost/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "tuner/search/pair_order.h"

namespace mycc {
namespace {

using Rows = std::vector<const Predicted*>;

// The indices of the k smallest values.
template <typename Key>
std::set<size_t> Smallest(const Rows& rows, size_t k, const Key& key) {
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return key(*rows[a]) < key(*rows[b]); });
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)};
}

double Recall(const Rows& rows) {
  const size_t k = std::max<size_t>(1, rows.size() / 10);
  const auto best = Smallest(rows, k, [](const Predicted& p) { return p.measured; });
  const auto predicted = Smallest(rows, k, [](const Predicted& p) { return p.predicted; });
  return static_cast<double>(std::ranges::count_if(best, [&](size_t i) { return predicted.count(i) > 0; })) /
         static_cast<double>(k);
}

}  // namespace

OrderMetrics EvaluateOrder(const std::vector<Predicted>& rows) {
  std::map<std::string, Rows> groups;
  for (const Predicted& row : rows) groups[row.group].push_back(&row);
  OrderMetrics metrics;
  PairOrder order;
  double recall = 0, squares = 0;
  int compared = 0;
  for (const auto& [name, group] : groups) {
    if (group.size() < 2) continue;
    ++compared;
    metrics.rows += static_cast<int>(group.size());
    recall += Recall(group);
    double error = 0;
    for (const Predicted* row : group)
      error += (row->predicted - row->measured) / static_cast<double>(group.size());
    std::vector<std::pair<double, double>> pairs;
    for (const Predicted* row : group) {
      squares += std::pow(row->predicted - row->measured - error, 2);
      pairs.emplace_back(row->predicted, row->measured);
    }
    const PairOrder in_group = CountPairs(pairs);
    order.right += in_group.right;
    order.pairs += in_group.pairs;
  }
  if (compared == 0) return metrics;
  metrics.pairwise_accuracy = order.pairs > 0 ? order.right / order.pairs : 0.5;
  metrics.recall_at_k = recall / compared;
  metrics.rmse = std::sqrt(squares / metrics.rows);
  return metrics;
}

double ClearPairs(const std::vector<Predicted>& rows, double clear) {
  double right = 0, pairs = 0;
  for (const Predicted& slow : rows) {
    for (const Predicted& fast : rows) {
      if (slow.measured - fast.measured <= std::log1p(clear)) continue;
      ++pairs;
      right += slow.predicted > fast.predicted ? 1 : slow.predicted == fast.predicted ? 0.5 : 0;
    }
  }
  return pairs > 0 ? right / pairs : 0.5;
}

double BestOfTop(const std::vector<Predicted>& rows, size_t k) {
  Rows pointers;
  for (const Predicted& row : rows) pointers.push_back(&row);
  double best = rows[0].measured, of_top = std::numeric_limits<double>::infinity();
  for (const Predicted& row : rows) best = std::min(best, row.measured);
  for (const size_t i :
       Smallest(pointers, std::min(k, rows.size()), [](const Predicted& p) { return p.predicted; }))
    of_top = std::min(of_top, rows[i].measured);
  return std::exp(best - of_top);
}

}  // namespace mycc
