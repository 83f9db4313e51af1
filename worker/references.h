// Builds and keeps the reference kernels that a GPU's candidates are compared with: one for each workload and
// target, built for its first candidate, shared by all, and removed when others were used more recently.
//
//   Take --> building --> built: a library, or why there is none, for good
//               ^  |
//        Await -'  '----> lost: not the kernel's fault
//
// When a build is lost, the next waiter begins it again, once, so that no waiter depends on another one.
// Thread rule: thread-safe, but for a reference's cases.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "worker/build_pool.h"

namespace mycc {

// Cases that were prepared with a reference on a device, by the seed of the inputs.
using PreparedCases = std::map<uint64_t, absl::StatusOr<v1::GpuCase>>;

class Reference {
 public:
  explicit Reference(v1::BuildRequest request) : request_(std::move(request)) {}
  Reference(const Reference&) = delete;
  ~Reference();  // removes its folder

  PreparedCases cases;  // of the device's thread alone

 private:
  friend class References;
  enum class State { kBuilding, kBuilt, kLost };

  const v1::BuildRequest request_;  // with a folder of its own: equal code has equal names
  // Guarded by the mutex of References.
  State state_ = State::kLost;
  BuildOutcome outcome_;
  std::vector<std::function<void()>> when_built_;
};

class References {
 public:
  using StartBuild = std::function<void(BuildWork)>;

  // Keeps `most` references, and further ones that are in use. Their folders are made in `folder`.
  References(std::string folder, size_t most, StartBuild start);
  // Waits for builds under way.
  ~References();

  // The reference of the request's workload and target, whose build begins unless it has been begun. It
  // exists while it is held.
  std::shared_ptr<Reference> Take(const v1::BuildRequest& request);
  // The outcome of the reference's build; WORKER_LOST when it was lost twice, or is not wanted any more.
  BuildOutcome Await(const std::shared_ptr<Reference>& reference);
  // Calls the function once: when the build that is under way ends, before those who await it hear of it, or
  // at once where none is. It must not call the references.
  void WhenBuilt(const std::shared_ptr<Reference>& reference, std::function<void()> call);
  // Cancels builds that wait.
  void Stop();

 private:
  void Begin(const std::shared_ptr<Reference>& reference) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStopping();

  const std::string folder_;
  const size_t most_;
  const StartBuild start_;

  Mutex mutex_;
  CondVar changed_;
  std::list<std::shared_ptr<Reference>> kept_ ABSL_GUARDED_BY(mutex_);  // the one used last stands first
  uint64_t folders_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t building_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mycc
