#include "codegen/program/alternative_list.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

// How many tasks the alternatives may add: a share of the kernels, and those of one alternative at least.
constexpr size_t kKernelsATask = 3, kLeastTasks = 3;

// A guess of the time of all launches, in bytes of traffic.
double RoughWork(const Workload& workload) {
  constexpr double kFlopsAByte = 16;
  return static_cast<double>(workload.count) * (CountBytes(workload) + CountFlops(workload) / kFlopsAByte);
}

}  // namespace

void AlternativeList::Add(const std::string& name, const Workload& instead_of, std::vector<Workload> parts) {
  const auto [at, is_new] = numbers_.emplace(name, entries_.size());
  if (is_new) entries_.push_back({{name, {instead_of}, {}}, {}});
  Entry& entry = entries_[at->second];
  if (!is_new) ++entry.alternative.instead_of[0].count;
  for (Workload& part : parts) {
    const std::string text = CanonicalText(part);
    const auto known = std::ranges::find(entry.texts, text);
    if (known != entry.texts.end()) {
      ++entry.alternative.parts[known - entry.texts.begin()].count;
      continue;
    }
    entry.texts.push_back(text);
    entry.alternative.parts.push_back(std::move(part));
  }
}

std::vector<Alternative> AlternativeList::Take(const std::unordered_map<std::string, size_t>& kernels) {
  std::ranges::stable_sort(entries_, [](const Entry& a, const Entry& b) {
    return RoughWork(a.alternative.instead_of[0]) > RoughWork(b.alternative.instead_of[0]);
  });
  const size_t most = std::max(kLeastTasks, kernels.size() / kKernelsATask);
  std::unordered_set<std::string> added;
  std::vector<Alternative> kept;
  for (Entry& entry : entries_) {
    std::unordered_set<std::string> with = added;
    for (const std::string& text : entry.texts) {
      if (kernels.count(text) == 0) with.insert(text);
    }
    if (with.size() > most) continue;
    added = std::move(with);
    kept.push_back(std::move(entry.alternative));
  }
  return kept;
}

}  // namespace mycc
