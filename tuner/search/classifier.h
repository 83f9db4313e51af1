// The interface through which a search asks which of its points belong to a class. Thread rule:
// thread-compatible.
#pragma once

#include <vector>

namespace mycc {

// Rows of numbers, all of one width. NaN stands for a number that a row does not have.
struct NumberTable {
  int width = 0;
  std::vector<float> values;  // row after row

  int rows() const { return width == 0 ? 0 : static_cast<int>(values.size()) / width; }
};

class Classifier {
 public:
  virtual ~Classifier() = default;
  // Learns from `known`, whose row i is of the class with the probability labels[i] and counts weights[i]
  // times; then gives the probability of each row of `asked`. A pure function of its arguments, bit for bit,
  // and of no earlier call. REQUIRES: tables of one width of at least 1, at least one known row.
  virtual std::vector<double> Classify(const NumberTable& known, const std::vector<float>& labels,
                                       const std::vector<float>& weights, const NumberTable& asked) = 0;
};

}  // namespace mycc
