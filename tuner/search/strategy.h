// The interface of search strategies: Ask for a generation of candidates, Tell their measured outcomes.
//
//   sketches, history, seed --> Ask() --> candidates
//     --> (the caller has them built, run and timed) --> outcomes --> Tell()
//
// Deterministic: a generation is a function of the configuration, the sketches, the history, the
// candidates of earlier generations, and the outcomes of the generations that it may see. The order and
// grouping in which outcomes arrive do not matter. A strategy's state can be rebuilt from recorded
// candidates (Restore) and outcomes (Tell). By default generation g + 1 sees the generations up to g - 1,
// so that workers stay busy while g is measured. Thread rule: thread-compatible. No clock, no thread, no
// I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "tuner/search/ledger.h"
#include "tuner/space/space.h"

namespace mycc {

// A cost model's prediction for a candidate.
struct Prediction {
  double seconds = 0;              // the analytic estimate, corrected by what was learned
  double analytic_seconds = 0;     // without the correction
  double failure_probability = 0;  // that building, running or verifying it fails
  // The version of the model that predicted. Predictions of two versions are not comparable: a correction
  // that was learned between them shifts all of them.
  uint64_t model = 0;
};

// Predicts traces by replay, features and model. Deterministic as long as its model does not
// change.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // One answer for each trace, in order; an error (with its reason) where the candidate must not be proposed:
  // the trace does not replay, or a limit of the target is exceeded. All answers of a call are of one model.
  virtual std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) = 0;
};

struct SearchConfig {
  std::string strategy = "evolutionary";  // or "random", "grid"
  uint64_t seed = 0;
  int generation_size = 16;
  // Evolutionary alone: members of a population, steps of mutation and crossover in one generation, and the
  // share of a generation that is drawn at random whatever the model says.
  int population = 128;
  int evolution_steps = 3;
  double epsilon = 0.1;
};

// A proposed candidate, with the text that makes it unique.
struct ProposedPoint {
  Candidate candidate;
  std::string steps_key;
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;

  // True when Ask() would not refuse: all outcomes that the next generation sees have been told.
  bool Ready() const;
  // True once the space had too few new points for a generation. Outcomes may still be told.
  bool Exhausted() const { return exhausted_; }
  // True when the last Ask ranked points by what the scorer predicts.
  bool FollowedPredictions() const { return followed_predictions_; }

  // The next generation: at most `generation_size` candidates. Each does other steps than every earlier
  // one. Empty when the space is exhausted. FailedPrecondition, naming the missing ones, when not
  // Ready().
  absl::StatusOr<std::vector<Candidate>> Ask();
  // The same with the outcomes of the first `visible` generations, cut to the first `limit` candidates. For a
  // Campaign, which knows more than the default lag and has a budget. It must derive both arguments from its
  // deterministic order of proposals. REQUIRES: limit >= 1.
  absl::StatusOr<std::vector<Candidate>> Ask(int visible, int limit);

  // Outcomes in any order and grouping. InvalidArgument for a candidate that was never proposed or a second,
  // different outcome for one; the same outcome again changes nothing.
  absl::Status Tell(const std::vector<Outcome>& outcomes);

  // Restores a recorded generation in place of asking for it. Generations come in order, with the trace,
  // the predicted seconds and the model that Ask gave; `point` is read from the trace's decisions. A
  // candidate without a trace is lost: it keeps its place, and nothing is known of it. InvalidArgument
  // when the generation is not the next one, when an index is missing or a trace is not of these
  // sketches.
  absl::Status Restore(const std::vector<Candidate>& generation);

  const Ledger& ledger() const { return ledger_; }
  const std::vector<Sketch>& sketches() const { return sketches_; }
  // The reasons why points did not become candidates in the last Ask, with counts, most frequent first.
  const std::vector<std::pair<std::string, int>>& refusals() const { return refusals_; }

 protected:
  SearchStrategy(SearchConfig config, std::vector<Sketch> sketches);

  // Generation number `generation`, a function of its arguments and of ledger() restricted to what `visible`
  // allows: candidates of every earlier generation, outcomes of the first `visible` ones. Generation and
  // index are filled in by the caller.
  virtual std::vector<ProposedPoint> Propose(int generation, int visible) = 0;
  void CountRefusal(const std::string& reason);

  const SearchConfig config_;
  const std::vector<Sketch> sketches_;
  bool followed_predictions_ = false;

 private:
  Ledger ledger_;
  bool exhausted_ = false;
  std::vector<std::pair<std::string, int>> refusals_;
};

// InvalidArgument for an unknown name, with the known ones.
absl::Status CheckStrategy(const std::string& name);

// `history`: traces that were good for this workload or a neighbour of it, best first; their decisions are
// re-fitted to these sketches. `scorer` outlives the strategy; null means no predictions. InvalidArgument for
// an unknown strategy or a senseless size.
absl::StatusOr<std::unique_ptr<SearchStrategy>> MakeSearchStrategy(const SearchConfig& config,
                                                                   std::vector<Sketch> sketches,
                                                                   const std::vector<Trace>& history,
                                                                   Scorer* scorer);

}  // namespace mycc
