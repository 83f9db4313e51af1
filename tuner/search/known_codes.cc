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
    std::vector<const std::string*> traces;
    for (const SearchLedger::Entry& entry : ledger.generation(g)) traces.push_back(&entry.candidate.trace);
    Prefetch(traces);
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

void KnownCodes::Prefetch(const std::vector<const std::string*>& traces) {
  if (scorer_ == nullptr) return;
  std::vector<std::string> keys;
  std::vector<Trace> parsed;
  for (const std::string* trace : traces) {
    const std::string key = Sha256Hex(*trace);
    if (memo_.contains(key) || std::ranges::find(keys, key) != keys.end()) continue;
    absl::StatusOr<Trace> readable = ParseTrace(*trace);
    if (!readable.ok()) continue;
    keys.push_back(key);
    parsed.push_back(*std::move(readable));
  }
  if (keys.empty()) return;
  std::vector<const Trace*> asked;
  for (const Trace& trace : parsed) asked.push_back(&trace);
  const std::vector<absl::StatusOr<std::string>> codes = scorer_->CodesOf(asked);
  if (memo_.size() + keys.size() > kMostRemembered) memo_.clear();
  for (size_t i = 0; i < keys.size(); ++i) memo_.emplace(keys[i], codes[i]);
}

absl::StatusOr<std::string> KnownCodes::CodeOf(const std::string& trace) {
  const std::string key = Sha256Hex(trace);
  if (!memo_.contains(key)) Prefetch({&trace});
  const auto known = memo_.find(key);
  return known == memo_.end() ? std::string() : known->second;
}

std::string KnownCodes::CandidateWith(const std::string& code) const {
  const auto found = candidates_.find(code);
  if (code.empty() || found == candidates_.end()) return "";
  return absl::StrCat(found->second.first, "/", found->second.second);
}

}  // namespace mycc
