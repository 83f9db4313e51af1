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

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "tuner/search/classifier.h"
#include "tuner/search/pool.h"
#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"
#include "tuner/space/space.h"

namespace mycc {

struct SearchConfig {
  std::string strategy = "evolutionary";  // or another of StrategyNames()
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

  const SearchLedger& ledger() const { return ledger_; }
  const std::vector<Sketch>& sketches() const { return sketches_; }
  // The reasons why points did not become candidates in the last Ask, with counts, most frequent first.
  // Points that an earlier Ask of this search refused for good are not counted again.
  const std::vector<std::pair<std::string, int>>& refusals() const { return refusals_; }

 protected:
  SearchStrategy(SearchConfig config, std::vector<Sketch> sketches, Scorer* scorer);

  // Generation number `generation`, a function of its arguments and of ledger() restricted to what `visible`
  // allows: candidates of every earlier generation, outcomes of the first `visible` ones. The caller fills in
  // generation and index, and takes the first wanted() of them.
  virtual std::vector<ProposedPoint> Propose(int generation, int visible) = 0;
  // The point of a trace that is restored; nullopt when this search cannot have proposed it.
  virtual std::optional<Point> PointOfRecorded(const Trace& trace) const { return PointOf(trace, sketches_); }
  // The number of candidates that are asked for: config_.generation_size, or fewer where the budget says so.
  int wanted() const { return wanted_; }
  // For pools of this strategy, in which all points without a prediction are alike.
  Pool::Context UnrankedContext();

  const SearchConfig config_;
  const std::vector<Sketch> sketches_;
  Scorer* const scorer_;  // refuses candidates that cannot run, and predicts the others; may be null

 private:
  void CountRefusal(const std::string& reason);

  SearchLedger ledger_;
  KnownCodes codes_;
  // Points that the generation at hand found to be no candidates. A search that is restored has not seen what
  // earlier generations found, so it must not count.
  absl::flat_hash_set<Point> dead_;
  bool exhausted_ = false;
  int wanted_;
  std::vector<std::pair<std::string, int>> refusals_;
};

// The strategies that search the space of sketches, the default one first.
std::vector<std::string> StrategyNames();

// Whether the strategy's proposals depend on outcomes.
bool Learns(const std::string& strategy);

// The strategy that measures given traces alone (listed.h).
inline constexpr char kListedStrategy[] = "listed";
// The strategy that needs a classifier (bayesian.h).
inline constexpr char kBayesianStrategy[] = "bayesian";

// InvalidArgument for a name that is neither of StrategyNames() nor `listed`, with the known ones.
absl::Status CheckStrategy(const std::string& name);

// `history`: traces that were good for this workload or a neighbour of it, best first; their decisions are
// re-fitted to these sketches. For `listed` they are the candidates, and sketches are not needed. `scorer`
// outlives the strategy; null means no predictions. `classifier` outlives it too; only `bayesian` needs one.
// InvalidArgument for an unknown strategy, a senseless size, and `bayesian` without a classifier.
absl::StatusOr<std::unique_ptr<SearchStrategy>> MakeSearchStrategy(const SearchConfig& config,
                                                                   std::vector<Sketch> sketches,
                                                                   const std::vector<Trace>& history,
                                                                   Scorer* scorer,
                                                                   Classifier* classifier = nullptr);

}  // namespace mycc
