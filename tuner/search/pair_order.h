// Counts the pairs of candidates that predictions put in the right order. Pure functions.
#pragma once

#include <utility>
#include <vector>

namespace mycc {

struct PairOrder {
  double right =
      0;  // pairs that both numbers put into the same order; one that `first` leaves equal counts half
  double pairs = 0;  // that differ in `second`
};

// All pairs of rows (predicted, measured), in O(n log n): Knight's counting of inversions ("A Computer Method
// for Calculating Kendall's Tau with Ungrouped Data", 1966), with a Fenwick tree in place of merge sort.
PairOrder CountPairs(const std::vector<std::pair<double, double>>& rows);

}  // namespace mycc
