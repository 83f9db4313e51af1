#include "tuner/search/known_codes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {
namespace {

constexpr size_t kMostRemembered = 1024;

}  // namespace

void KnownCodes::CatchUp(const SearchLedger& ledger) {
  if (scorer_ == nullptr) return;
  // The latest generations, with as many candidates together: the same ones in a search that is restored.
  int first = ledger.generations();
  for (size_t candidates = 0; first > 0; --first) {
    candidates += ledger.generation(first - 1).size();
    if (candidates > most_candidates_) break;
  }
  for (int g = std::max(first, generations_); g < ledger.generations(); ++g) {
    for (const SearchLedger::Entry& entry : ledger.generation(g)) {
      if (entry.candidate.trace.empty()) continue;
      const absl::StatusOr<std::string> code = CodeOf(entry.candidate.trace);
      if (!code.ok() || code->empty()) continue;
      candidates_.insert_or_assign(*code, std::make_pair(g, entry.candidate.index));
      order_.emplace_back(g, *code);
    }
  }
  generations_ = ledger.generations();
  for (; !order_.empty() && order_.front().first < first; order_.pop_front()) {
    const auto found = candidates_.find(order_.front().second);
    if (found != candidates_.end() && found->second.first < first) candidates_.erase(found);
  }
}

absl::StatusOr<std::string> KnownCodes::CodeOf(const std::string& trace) {
  if (scorer_ == nullptr) return std::string();
  const std::string key = Sha256Hex(trace);
  if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
  const absl::StatusOr<Trace> parsed = ParseTrace(trace);
  absl::StatusOr<std::string> code = std::string();
  if (parsed.ok()) code = scorer_->CodeOf(*parsed);
  if (memo_.size() >= kMostRemembered) memo_.clear();
  memo_.emplace(key, code);
  return code;
}

std::string KnownCodes::CandidateWith(const std::string& code) const {
  const auto found = candidates_.find(code);
  if (code.empty() || found == candidates_.end()) return "";
  return absl::StrCat(found->second.first, "/", found->second.second);
}

}  // namespace mycc
