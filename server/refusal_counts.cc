#include "server/refusal_counts.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace mycc {
namespace {

constexpr size_t kMostKinds = 8;
constexpr size_t kMostBytes = 160;
constexpr char kAnyNumber = '#';

bool IsPartOfNumber(char c) { return c == kAnyNumber || std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The text with `#` for each number, and the numbers.
std::pair<std::string, std::vector<std::string>> WithoutNumbers(const std::string& text) {
  std::string kind;
  std::vector<std::string> numbers;
  bool was_number = false;
  for (const char c : text) {
    const bool is_number = IsPartOfNumber(c);
    if (!is_number) {
      kind += c;
    } else if (was_number) {
      numbers.back() += c;
    } else {
      kind += kAnyNumber;
      numbers.emplace_back(1, c);
    }
    was_number = is_number;
  }
  return {std::move(kind), std::move(numbers)};
}

std::string WithNumbers(const std::string& kind, const std::vector<std::string>& numbers) {
  std::string text;
  size_t next = 0;
  for (const char c : kind) {
    if (c == kAnyNumber) {
      text += numbers[next++];
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

void RefusalCounts::Add(const std::string& reason, int64_t points) {
  auto [name, numbers] = WithoutNumbers(reason.substr(0, std::min(reason.find('\n'), kMostBytes)));
  const auto [found, is_new] = kinds_.try_emplace(std::move(name), Kind{numbers, 0});
  Kind& kind = found->second;
  kind.points += points;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (kind.numbers[i] != numbers[i]) kind.numbers[i] = kAnyNumber;
}

std::vector<RefusalCount> RefusalCounts::MostFrequent() const {
  std::vector<RefusalCount> counts;
  counts.reserve(kinds_.size());
  for (const auto& [name, kind] : kinds_) counts.push_back({WithNumbers(name, kind.numbers), kind.points});
  std::ranges::stable_sort(counts,
                           [](const RefusalCount& a, const RefusalCount& b) { return a.points > b.points; });
  if (counts.size() <= kMostKinds) return counts;
  RefusalCount rest{"other reasons", 0};
  for (size_t i = kMostKinds - 1; i < counts.size(); ++i) rest.points += counts[i].points;
  counts.resize(kMostKinds - 1);
  counts.push_back(std::move(rest));
  return counts;
}

}  // namespace mycc
