#include "tests/fuzz/scripted_search.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr uint32_t kMostTrials = 12;  // of a task: a run of the fuzzer is short

class ScriptedSearch final : public JobSearch {
 public:
  explicit ScriptedSearch(const SearchStart& start)
      : trials_(
            std::min(kMostTrials, std::max(start.job->spec().trials(), start.job->spec().total_trials()))),
        generation_size_(start.job->generation_size()),
        generations_(start.tasks->size()) {
    for (const v1::Proposal& proposal : start.proposals) ++generations_[proposal.task()];
  }

  absl::StatusOr<SearchStep> Next(const TaskOutcomes&, double elapsed_seconds, uint32_t window) override {
    SearchStep step;
    for (uint32_t task = 0; task < generations_.size(); ++task) {
      const uint32_t first = generations_[task] * generation_size_;
      if (first >= trials_) continue;
      v1::Proposal& proposal = step.proposal.emplace();
      proposal.set_task(task);
      proposal.set_generation(generations_[task]++);
      proposal.set_elapsed_seconds(elapsed_seconds);
      proposal.mutable_state()->set_window(window);
      for (uint32_t i = first; i < std::min(trials_, first + generation_size_); ++i) {
        proposal.add_traces(absl::StrCat("candidate ", i));
        proposal.mutable_state()->add_candidates()->set_origin(2);
      }
      return step;
    }
    step.stop_reason = StopReason::kTrials;
    return step;
  }
  absl::StatusOr<ModelBytes> Models() override { return ModelBytes(); }

 private:
  const uint32_t trials_, generation_size_;
  std::vector<uint32_t> generations_;  // of each task
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobSearch>> StartScriptedSearch(const SearchStart& start) {
  return std::unique_ptr<JobSearch>(std::make_unique<ScriptedSearch>(start));
}

}  // namespace mycc
