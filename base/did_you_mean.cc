#include "base/did_you_mean.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// Letters to insert, delete or replace (Levenshtein).
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;  // a longer word is no name with a slip in it
  const std::string* nearest = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    const size_t distance = word.size() > kLongest ? kLongest : EditDistance(word, name);
    if (3 * distance > name.size() || (nearest != nullptr && distance >= least)) continue;
    nearest = &name;
    least = distance;
  }
  return nearest == nullptr ? "" : *nearest;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(word, names);
  return nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)");
}

}  // namespace mycc
