#include "tuner/search/strategy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "tuner/search/annealing.h"
#include "tuner/search/bayesian.h"
#include "tuner/search/descent.h"
#include "tuner/search/differential.h"
#include "tuner/search/evolutionary.h"
#include "tuner/search/grid.h"
#include "tuner/search/listed.h"
#include "tuner/search/random.h"

namespace mycc {
namespace {

constexpr char kEvolutionary[] = "evolutionary", kDescent[] = "descent", kAnnealing[] = "annealing",
               kDifferential[] = "differential", kRandom[] = "random", kGrid[] = "grid";

int DefaultLag(int generation) { return std::max(0, generation - 1); }

// "12/3, 12/5": the first few candidates of the visible generations that lack an outcome.
std::string Missing(const SearchLedger& ledger, int visible) {
  constexpr int kShown = 4;
  std::string names;
  int count = 0;
  for (int g = 0; g < std::min(visible, ledger.generations()); ++g) {
    for (const SearchLedger::Entry& entry : ledger.generation(g)) {
      if (entry.outcome) continue;
      if (++count <= kShown) absl::StrAppend(&names, count > 1 ? ", " : "", g, "/", entry.candidate.index);
    }
  }
  if (count > kShown) absl::StrAppend(&names, " and ", count - kShown, " more");
  return names;
}

}  // namespace

SearchStrategy::SearchStrategy(SearchConfig config, std::vector<Sketch> sketches, Scorer* scorer)
    : config_(std::move(config)),
      sketches_(std::move(sketches)),
      scorer_(scorer),
      codes_(scorer),
      wanted_(config_.generation_size) {}

bool SearchStrategy::Ready() const { return ledger_.complete() >= DefaultLag(ledger_.generations()); }

absl::StatusOr<std::vector<Candidate>> SearchStrategy::Ask() {
  return Ask(DefaultLag(ledger_.generations()), config_.generation_size);
}

absl::StatusOr<std::vector<Candidate>> SearchStrategy::Ask(int visible, int limit) {
  MYCC_CHECK(limit >= 1) << "a generation of " << limit;
  const int generation = ledger_.generations();
  if (visible > ledger_.complete()) {
    return absl::FailedPreconditionError(
        absl::StrCat("generation ", generation, " depends on the first ", visible,
                     " generations; outcomes are missing of ",
                     visible > generation ? "generations not yet proposed" : Missing(ledger_, visible)));
  }
  refusals_.clear();
  dead_.clear();
  if (exhausted_) return std::vector<Candidate>();
  wanted_ = std::min(limit, config_.generation_size);
  codes_.CatchUp(ledger_);
  std::vector<ProposedPoint> proposals = Propose(generation, visible);
  MYCC_CHECK(static_cast<int>(proposals.size()) <= config_.generation_size)
      << proposals.size() << " proposals";
  std::ranges::stable_sort(refusals_, [](const auto& a, const auto& b) { return a.second > b.second; });
  exhausted_ = static_cast<int>(proposals.size()) < wanted_;
  if (!exhausted_) proposals.resize(wanted_);
  if (proposals.empty()) return std::vector<Candidate>();

  std::vector<Candidate> candidates;
  std::vector<std::string> keys;
  for (ProposedPoint& proposal : proposals) {
    proposal.candidate.generation = static_cast<uint32_t>(generation);
    proposal.candidate.index = static_cast<uint32_t>(candidates.size());
    candidates.push_back(std::move(proposal.candidate));
    keys.push_back(std::move(proposal.steps_key));
  }
  ledger_.Add(candidates, keys);
  return candidates;
}

absl::Status SearchStrategy::Tell(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) MYCC_RETURN_IF_ERROR(ledger_.Tell(outcome));
  return absl::OkStatus();
}

absl::Status SearchStrategy::Restore(const std::vector<Candidate>& generation) {
  const int number = ledger_.generations();
  if (generation.empty() || static_cast<int>(generation.size()) > config_.generation_size) {
    return absl::InvalidArgumentError(absl::StrCat("restoring generation ", number, ": ", generation.size(),
                                                   " candidates; expected 1 to ", config_.generation_size));
  }
  std::vector<Candidate> candidates = generation;
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) { return a.index < b.index; });
  std::vector<std::string> keys;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    const std::string where =
        absl::StrCat("restoring candidate ", candidate.generation, "/", candidate.index, ": ");
    if (static_cast<int>(candidate.generation) != number || candidate.index != i) {
      return absl::InvalidArgumentError(absl::StrCat(where, "expected ", number, "/", i));
    }
    if (candidate.trace.empty()) {
      keys.push_back(absl::StrCat("lost ", number, "/", i));  // no trace's
      continue;
    }
    const absl::StatusOr<Trace> trace = ParseTrace(candidate.trace);
    if (!trace.ok()) return absl::InvalidArgumentError(absl::StrCat(where, trace.status().message()));
    const std::optional<Point> point = PointOfRecorded(*trace);
    if (!point)
      return absl::InvalidArgumentError(absl::StrCat(where, "its decisions are not of these sketches"));
    candidate.point = *point;
    keys.push_back(StepsKey(*trace));
    if (ledger_.Proposed(keys.back()) || std::ranges::count(keys, keys.back()) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(where, "an earlier candidate has the same steps"));
    }
  }
  ledger_.Add(std::move(candidates), keys);
  return absl::OkStatus();
}

Pool::Context SearchStrategy::UnrankedContext() {
  return {sketches_,
          ledger_,
          scorer_,
          [](const Point&) { return 0.0; },
          [this](const std::string& reason) { CountRefusal(reason); },
          &dead_,
          /*believe=*/true,
          &codes_};
}

void SearchStrategy::CountRefusal(const std::string& reason) {
  for (auto& [known, count] : refusals_) {
    if (known == reason) {
      ++count;
      return;
    }
  }
  refusals_.emplace_back(reason, 1);
}

std::vector<std::string> StrategyNames() {
  return {kEvolutionary, kDescent, kAnnealing, kBayesianStrategy, kDifferential, kRandom, kGrid};
}

bool Learns(const std::string& strategy) {
  return strategy != kRandom && strategy != kGrid && strategy != kListedStrategy;
}

absl::Status CheckStrategy(const std::string& name) {
  const std::vector<std::string> names = StrategyNames();
  if (name == kListedStrategy || std::ranges::find(names, name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("search: unknown strategy \"", name, "\"; expected ",
                                                 absl::StrJoin(names, ", "), " or ", kListedStrategy));
}

absl::StatusOr<std::unique_ptr<SearchStrategy>> MakeSearchStrategy(const SearchConfig& config,
                                                                   std::vector<Sketch> sketches,
                                                                   const std::vector<Trace>& history,
                                                                   Scorer* scorer, Classifier* classifier) {
  const bool is_listed = config.strategy == kListedStrategy;
  if (sketches.empty() && !is_listed)
    return absl::InvalidArgumentError("search: no sketches; expected at least one");
  if (config.generation_size < 1 || config.population < 2 || config.evolution_steps < 0 ||
      !(config.epsilon >= 0 && config.epsilon <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("search: generation_size ", config.generation_size,
                                                   ", population ", config.population, ", evolution_steps ",
                                                   config.evolution_steps, ", epsilon ", config.epsilon,
                                                   "; expected at least 1, 2, 0, and a share of 0 to 1"));
  }
  MYCC_RETURN_IF_ERROR(CheckStrategy(config.strategy));
  const std::string& name = config.strategy;
  std::unique_ptr<SearchStrategy> strategy;
  if (name == kEvolutionary) {
    strategy = std::make_unique<EvolutionarySearch>(config, std::move(sketches), history, scorer);
  } else if (name == kDescent) {
    strategy = std::make_unique<CoordinateDescent>(config, std::move(sketches), history, scorer);
  } else if (name == kAnnealing) {
    strategy = std::make_unique<SimulatedAnnealing>(config, std::move(sketches), history, scorer);
  } else if (name == kBayesianStrategy) {
    if (classifier == nullptr)
      return absl::InvalidArgumentError("search: the strategy bayesian needs a classifier");
    strategy = std::make_unique<BayesianSearch>(config, std::move(sketches), history, scorer, classifier);
  } else if (name == kDifferential) {
    strategy = std::make_unique<DifferentialEvolution>(config, std::move(sketches), history, scorer);
  } else if (is_listed) {
    strategy = std::make_unique<ListedSearch>(config, history);
  } else if (name == kRandom) {
    strategy = std::make_unique<RandomSearch>(config, std::move(sketches), scorer);
  } else {
    strategy = std::make_unique<GridSearch>(config, std::move(sketches), scorer);
  }
  return strategy;
}

}  // namespace mycc
