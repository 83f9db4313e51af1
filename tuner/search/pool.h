// The points from which one generation is chosen: each with its trace and prediction, and unique by its
// steps. A pool is built anew for every generation, so that a generation depends on the ledger alone. Thread
// rule: thread-compatible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tuner/search/failures_seen.h"
#include "tuner/search/known_codes.h"
#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"
#include "tuner/space/space.h"

namespace mycc {

struct Member {
  Point point;
  Origin origin;
  std::string trace;
  std::string steps_key;
  std::optional<Prediction> prediction;
  // Predicted seconds over the probability of success. For a measured member its measured time, in the
  // predictions' units.
  double expected_seconds = 0;
  bool proposed = false;  // in an earlier generation: a parent, never a proposal
};

class Pool {
 public:
  struct Context {
    const std::vector<Sketch>& sketches;
    const SearchLedger& ledger;
    Scorer* scorer = nullptr;
    // The order of unmeasured points where predictions are missing or not believed.
    std::function<double(const Point&)> unranked_order;
    std::function<void(const std::string&)> refuse;  // called with the reason why a point is no member
    // Points that never become members: a memo between the pools of a generation.
    absl::flat_hash_set<Point>* dead = nullptr;
    bool believe = true;                     // predictions rank
    KnownCodes* codes = nullptr;             // of the candidates; null: codes are not compared
    const FailuresSeen* failures = nullptr;  // of the task; null: nothing is known of failures
  };
  explicit Pool(const Context& context) : context_(context) {}

  // Points already known to the pool are skipped, as are those whose trace was proposed before or cannot be
  // made.
  void Add(const std::vector<std::pair<Point, Origin>>& points);
  // A measured candidate, as a parent.
  void AddMeasured(const Candidate& candidate, double expected_seconds);

  // The fastest first, ties in order of arrival.
  const std::vector<Member>& members() const { return members_; }
  void KeepFastest(int count);
  // The best member by the analytic estimate alone, among all unproposed members so far; null without
  // predictions.
  const Member* analytic_best() const { return analytic_best_ ? &*analytic_best_ : nullptr; }

 private:
  bool Admit(const Point& point, Origin origin, std::vector<Member>* members, std::vector<Trace>* traces);
  double SuccessOf(const Member& member) const;
  // Fills in predictions; drops the members that the scorer refuses.
  void Predict(const std::vector<Trace>& traces, std::vector<Member>* members);
  void Sort();

  const Context& context_;
  absl::flat_hash_set<Point> seen_points_;
  absl::flat_hash_set<std::string> seen_steps_;
  std::vector<Member> members_;
  std::optional<Member> analytic_best_;
};

}  // namespace mycc
