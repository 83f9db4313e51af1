// Follows a job for a command until the job ends or the user interrupts. Thread rule: thread-compatible; it
// blocks.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/progress_view.h"
#include "mycc_tune/tuning_client.h"
#include "proto/tuning.pb.h"

namespace mycc {

// Counts interrupts from now on. The second one ends the process at once.
class InterruptCount {
 public:
  InterruptCount();
  bool any() const { return count_ > 0; }

 private:
  std::atomic<int> count_ = 0;
  const InterruptWatch watch_;
};

struct FollowOptions {
  std::string client;  // that waits for the job; empty: an onlooker
  // For a server of this process, which is given up when it cannot write: why it has no space; OK where it
  // has. Null: the server is another's, and is waited for.
  std::function<absl::Status()> no_space;
};

// The last progress that was seen: of the job's end, or of the moment of the interrupt.
absl::StatusOr<v1::JobProgress> FollowJob(TuningClient* client, const FollowOptions& options,
                                          const InterruptCount& interrupts, v1::JobProgress progress,
                                          ProgressView* view);

// A job's end as a status, for waiting commands: OK when it is done, and found something for each of its
// tasks.
absl::Status Verdict(const v1::JobProgress& progress);

}  // namespace mycc
