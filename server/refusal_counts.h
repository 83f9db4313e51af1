// Counts the reasons why points of a search's spaces did not become candidates, by kind: reasons that differ
// in numbers alone are one kind, with `#` where they differ. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mycc {

struct RefusalCount {
  std::string reason;  // "# accumulators of 16"
  int64_t points = 0;
};

class RefusalCounts {
 public:
  // Counts points of a reason, which may be a kind that was counted before. One that is too long is cut.
  void Add(const std::string& reason, int64_t points);
  // The most frequent kinds first, ties in alphabetical order. Beyond a bounded number, the rest is one kind.
  std::vector<RefusalCount> MostFrequent() const;

 private:
  struct Kind {
    std::vector<std::string> numbers;
    int64_t points = 0;
  };
  std::map<std::string, Kind> kinds_;  // by the reason with `#` for each number
};

}  // namespace mycc
