// Counting pairs in the right order, compared with counting one by one.
#include "tuner/search/pair_order.h"

#include "gtest/gtest.h"
#include "tuner/search/rng.h"

namespace mycc {
namespace {

using Rows = std::vector<std::pair<double, double>>;

PairOrder CountOneByOne(const Rows& rows) {
  PairOrder order;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const double first = rows[i].first - rows[j].first, second = rows[i].second - rows[j].second;
      if (second == 0) continue;
      order.pairs += 1;
      order.right += first == 0 ? 0.5 : (first < 0) == (second < 0) ? 1 : 0;
    }
  }
  return order;
}

TEST(PairOrderTest, CountsWhatCountingOneByOneFinds) {
  Rng rng(1);
  for (int n = 0; n < 60; ++n) {
    Rows rows;  // of few values, so that both numbers have ties
    for (int i = 0; i < n; ++i) rows.emplace_back(rng.Below(1 + n / 2), rng.Below(1 + n / 3));
    const PairOrder expected = CountOneByOne(rows), order = CountPairs(rows);
    EXPECT_EQ(order.pairs, expected.pairs) << n;
    EXPECT_EQ(order.right, expected.right) << n;
  }
}

// A quadratic count of these takes ten minutes.
TEST(PairOrderTest, AMillionRows) {
  constexpr double kRows = 1e6;
  Rows rows;
  for (int i = 0; i < static_cast<int>(kRows); ++i) rows.emplace_back(i % 2 == 0 ? i : -i, i);
  const PairOrder order = CountPairs(rows);
  EXPECT_EQ(order.pairs, kRows * (kRows - 1) / 2);
  // An even row is above all earlier ones, an odd one below all.
  EXPECT_EQ(order.right, kRows / 2 * (kRows / 2 - 1));
}

}  // namespace
}  // namespace mycc
