// The codes of a search's candidates, so that two traces that are lowered to equal code are measured once. A
// code is a digest that the scorer computes (Scorer::CodesOf); it is computed only for candidates that are
// about to be proposed, since lowering takes longer than a prediction. A function of the ledger: a search
// that is restored knows the same. Thread rule: thread-compatible.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

class KnownCodes {
 public:
  // Null: no code is known. The candidates that codes are compared with are the latest ones.
  explicit KnownCodes(Scorer* scorer, size_t most_candidates = 4096)
      : scorer_(scorer), most_candidates_(most_candidates) {}

  // Takes in the generations that the ledger has gained.
  void CatchUp(const SearchLedger& ledger);
  // Whether there are codes to know.
  bool HasCodes() const { return scorer_ != nullptr && !scorer_->KnowsDecisionsAlone(); }
  // Computes the codes that are not known yet in one call of the scorer, which divides them among its
  // threads.
  void Prefetch(const std::vector<const std::string*>& traces);
  // The code of a trace; empty where the scorer knows none. An error, with its reason, where it cannot be
  // lowered.
  absl::StatusOr<std::string> CodeOf(const std::string& trace);
  // The candidate that has this code: "3/5", its generation and index; empty: none.
  std::string CandidateWith(const std::string& code) const;

 private:
  Scorer* const scorer_;
  const size_t most_candidates_;
  int generations_ = 0;                                                    // taken in
  absl::flat_hash_map<std::string, std::pair<int, uint32_t>> candidates_;  // generation and index, by code
  std::deque<std::pair<int, std::string>> order_;  // the codes with their generations, oldest first
  // Codes by a digest of the trace: points that do what another one does come again in each generation.
  absl::flat_hash_map<std::string, absl::StatusOr<std::string>> memo_;
};

}  // namespace mycc
