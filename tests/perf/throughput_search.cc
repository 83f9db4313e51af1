#include "tests/perf/throughput_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr int kShapes = 64;  // rows, before columns grow

// The steps of a tiled and vectorized product: as long as traces usually are.
constexpr char kSteps[] =
    "split(t2.a0, [12, 86])\nsplit(t2.a1, [4, 16])\nsplit(t2.r0, [256, 4])\n"
    "reorder(t2, [t2.a0.0, t2.r0.0, t2.a1.0, t2.a0.1, t2.r0.1, t2.a1.1])\n"
    "cache_read(t2, x, t2.r0.0)\ncache_read(t2, w, t2.a1.0)\ncache_write(t2, t2.r0.0)\n"
    "bind(t2.a0.0, parallel)\nbind(t2.a1.1, vector)\nunroll(t2.r0.1)\nunroll(t2.a0.1)\n";

class ScriptedSearch final : public JobSearch {
 public:
  explicit ScriptedSearch(const SearchStart& start)
      : generation_size_(start.job->generation_size()),
        trials_(start.job->spec().trials()),
        proposed_(start.tasks->size(), 0),
        generations_(start.tasks->size(), 0) {
    for (const v1::Proposal& proposal : start.proposals) {
      proposed_[proposal.task()] += static_cast<uint32_t>(proposal.traces_size());
      generations_[proposal.task()] = proposal.generation() + 1;
      next_task_ = (proposal.task() + 1) % proposed_.size();
    }
  }

  absl::StatusOr<SearchStep> Next(const TaskOutcomes&, double elapsed_seconds, uint32_t window) override {
    for (size_t tried = 0; tried < proposed_.size(); ++tried) {
      const size_t task = next_task_;
      next_task_ = (next_task_ + 1) % proposed_.size();
      if (proposed_[task] < trials_)
        return SearchStep{Propose(static_cast<uint32_t>(task), elapsed_seconds, window), std::nullopt};
    }
    return SearchStep{std::nullopt, StopReason::kTrials};
  }
  absl::StatusOr<ModelBytes> Models() override { return ModelBytes(); }

 private:
  v1::Proposal Propose(uint32_t task, double elapsed_seconds, uint32_t window) {
    v1::Proposal proposal;
    proposal.set_task(task);
    proposal.set_generation(generations_[task]++);
    proposal.set_elapsed_seconds(elapsed_seconds);
    proposal.mutable_state()->set_window(window);
    const uint32_t size = std::min(generation_size_, trials_ - proposed_[task]);
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t number = proposed_[task]++;
      proposal.add_traces(absl::StrCat("v1\nsketch contraction mr=", number % 8, " nr=", number / 8 % 8,
                                       " kc=", number / 64, "\n", kSteps));
      v1::SearchState::Candidate& candidate = *proposal.mutable_state()->add_candidates();
      candidate.set_predicted_seconds(1e-3);
      candidate.set_origin(static_cast<uint32_t>(number == 0 ? Origin::kDefault : Origin::kMutation));
    }
    return proposal;
  }

  const uint32_t generation_size_, trials_;
  std::vector<uint32_t> proposed_;     // trials of each task
  std::vector<uint32_t> generations_;  // of each task
  size_t next_task_ = 0;
};

}  // namespace

std::string BenchWorkload(int shape) {
  const int rows = 32 + 8 * (shape % kShapes), columns = 32 + 8 * (shape / kShapes);
  return absl::StrCat("workload gemm", shape, "(x: f32[", rows, ",64], w: f32[64,", columns, "]) -> (y: f32[",
                      rows, ",", columns, "]) {\n  y[i,j] = sum[k:64](x[i,k] * w[k,j])\n}\n");
}

v1::JobSpec BenchJob(int first_shape, int tasks, uint32_t trials) {
  v1::JobSpec spec;
  spec.set_name(absl::StrCat("bench", first_shape));
  for (int i = 0; i < tasks; ++i) spec.add_tasks()->set_workload(BenchWorkload(first_shape + i));
  spec.set_target(kBenchTarget);
  spec.set_trials(trials);
  spec.set_strategy("evolutionary");
  spec.set_seed(1);
  spec.set_fresh(true);
  return spec;
}

absl::StatusOr<std::unique_ptr<JobSearch>> StartScriptedSearch(const SearchStart& start) {
  return std::unique_ptr<JobSearch>(std::make_unique<ScriptedSearch>(start));
}

}  // namespace mycc
