// Measures the quality of predictions: the order of candidates, and the error. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mycc {

// A prediction and a measurement, both in log seconds. Only rows of one group are compared.
struct Predicted {
  double predicted = 0, measured = 0;
  std::string group;
};

struct OrderMetrics {
  int rows = 0;
  double pairwise_accuracy = 0;  // share of the pairs within groups in the right order; ties count half
  double recall_at_k = 0;        // share of each group's k fastest that are among its k predicted fastest
  double rmse = 0;               // of log seconds, each group's mean error taken away
};

// k: the fastest tenth of each group, at least one. Zeros without a group of two rows. O(n log n). REQUIRES:
// finite numbers.
OrderMetrics EvaluateOrder(const std::vector<Predicted>& rows);

// The share of the pairs in the right order, of those whose times differ by more than the share `clear`, as
// if all rows were of one group; 0.5 without such a pair. O(n^2).
double ClearPairs(const std::vector<Predicted>& rows, double clear);
// The fastest time over the fastest among the k predicted fastest: 1 when the best is among them. REQUIRES: a
// row.
double BestOfTop(const std::vector<Predicted>& rows, size_t k);

}  // namespace mycc
