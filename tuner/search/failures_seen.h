// The failures of a task before a model can learn from them: a choice whose candidates have all
// failed is likely to fail again. A search of few trials would otherwise spend them on one choice that the
// compiler or the device refuses, because the cost model thinks much of it. Pure: a function of the ledger.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

class FailuresSeen {
 public:
  // Counts those of the first `visible` generations. From kMost failures on it says nothing: then the cost
  // model has its own classifier, which sees more than single choices.
  static constexpr int kMost = 12;
  FailuresSeen(const SearchLedger& ledger, int visible);

  // The least success rate among the point's choices, each drawn towards the rate of all candidates as if
  // two more had been measured. 1 while nothing has failed.
  double Success(const Point& point) const;

 private:
  struct Count {
    int measured = 0, succeeded = 0;
  };
  struct Chosen {
    int sketch = 0;
    size_t decision = 0;
    int choice = 0;
    bool operator==(const Chosen&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Chosen& c) {
      return H::combine(std::move(h), c.sketch, c.decision, c.choice);
    }
  };

  Count all_;
  absl::flat_hash_map<Chosen, Count> counts_;
};

}  // namespace mycc
