#include "mycc_tune/job_follower.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "command/misuse.h"

namespace mycc {
namespace {

constexpr double kRedrawSeconds = 0.5;
constexpr auto kRetryPause = std::chrono::seconds(1);

// Whether a log has been in trouble for so long, with nothing measured meanwhile, that it is no passing one.
// A full disk rarely passes; another process may keep the log busy for a while.
class TroubleWatch {
 public:
  bool IsStuck(const v1::JobProgress& progress, bool has_space) {
    const auto now = std::chrono::steady_clock::now();
    if (progress.trouble().empty() || progress.trials() != trials_) {
      trials_ = progress.trials();
      since_ = now;
    }
    return now - since_ > (has_space ? kPatience : kPatienceWithoutSpace);
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(60), kPatienceWithoutSpace = std::chrono::seconds(5);
  int64_t trials_ = -1;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

InterruptCount::InterruptCount()
    : watch_([this](int nth) {
        if (nth > 1) std::_Exit(kInterruptedExitStatus);
        count_ = nth;
      }) {}

absl::StatusOr<v1::JobProgress> FollowJob(TuningClient* client, const FollowOptions& options,
                                          const InterruptCount& interrupts, v1::JobProgress progress,
                                          ProgressView* view) {
  const std::string job = progress.job();
  std::string trouble;
  TroubleWatch log_trouble;
  while (!HasEnded(progress) && !interrupts.any()) {
    view->Update(progress);
    if (options.no_space && log_trouble.IsStuck(progress, options.no_space().ok())) {
      return absl::ResourceExhaustedError(
          absl::StrCat(progress.trouble(), "; the same command continues job ", job));
    }
    absl::StatusOr<v1::JobProgress> next =
        client->Watch(job, progress.revision(), kRedrawSeconds, options.client);
    if (next.ok()) {
      progress = *std::move(next);
      trouble.clear();
      continue;
    }
    // The server may be away for a moment, or have more messages than it takes at once; the job goes on
    // without this client in any case.
    if (!absl::IsUnavailable(next.status()) && !absl::IsDeadlineExceeded(next.status()) &&
        !absl::IsResourceExhausted(next.status()))
      return next.status();
    if (trouble.empty()) view->Say(absl::StrCat(next.status().message(), "; trying again"));
    trouble = std::string(next.status().message());
    std::this_thread::sleep_for(kRetryPause);
  }
  return progress;
}

absl::Status Verdict(const v1::JobProgress& progress) {
  if (progress.state() == v1::JOB_STATE_FAILED)
    return absl::FailedPreconditionError(
        absl::StrCat("job ", progress.job(), " failed: ", progress.message()));
  if (progress.state() == v1::JOB_STATE_CANCELLED) {
    return absl::CancelledError(
        absl::StrCat("job ", progress.job(), " was ", progress.message(), "; its ", KeptResults(progress)));
  }
  for (const v1::TaskProgress& task : progress.tasks()) {
    const bool fruitless = task.best_seconds() == 0 && task.trials() > 0;
    if (fruitless)
      return absl::FailedPreconditionError(absl::StrCat(task.workload_name(), ": ", task.message()));
  }
  return absl::OkStatus();
}

}  // namespace mycc
