#include "worker/references.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/names.h"
#include "worker/scratch.h"

namespace mycc {

Reference::~Reference() {
  std::error_code ignored;
  std::filesystem::remove_all(request_.directory(), ignored);
}

References::References(std::string folder, size_t most, StartBuild start)
    : folder_(std::move(folder)), most_(most), start_(std::move(start)) {}

References::~References() {
  Stop();
  const MutexLock lock(&mutex_);
  while (building_ > 0) changed_.Wait(&mutex_);
}

void References::Stop() {
  const MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.NotifyAll();
}

bool References::IsStopping() {
  const MutexLock lock(&mutex_);
  return stopping_;
}

std::shared_ptr<Reference> References::Take(const v1::BuildRequest& request) {
  const MutexLock lock(&mutex_);
  const auto known = std::ranges::find_if(kept_, [&request](const auto& kept) {
    return kept->request_.target() == request.target() && kept->request_.workload() == request.workload();
  });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front();
  }
  v1::BuildRequest own = request;
  own.set_directory(absl::StrCat(folder_, "/reference-", folders_++));
  const auto reference = std::make_shared<Reference>(std::move(own));
  kept_.push_front(reference);
  ForgetOld();
  Begin(reference);
  return reference;
}

void References::ForgetOld() {
  for (auto oldest = kept_.end(); kept_.size() > most_ && oldest != kept_.begin();) {
    --oldest;
    // It is copied only from here, so that no other hold can begin now.
    if (oldest->use_count() == 1) oldest = kept_.erase(oldest);
  }
}

void References::Begin(const std::shared_ptr<Reference>& reference) {
  reference->state_ = Reference::State::kBuilding;
  ++building_;
  (void)MakeFolder(reference->request_.directory());  // one that cannot be made is the build's error
  start_({reference->request_, [this] { return !IsStopping(); },
          [this, reference](std::optional<BuildOutcome> outcome) {
            const MutexLock lock(&mutex_);
            reference->outcome_ =
                outcome ? *std::move(outcome) : BuildOutcome{{v1::MEASURE_STATUS_WORKER_LOST, "stopped"}};
            const bool lost = IsInfrastructureFailure(reference->outcome_.ending.status);
            reference->state_ = lost ? Reference::State::kLost : Reference::State::kBuilt;
            for (const auto& call : std::exchange(reference->when_built_, {})) call();
            --building_;
            changed_.NotifyAll();
          }});
}

void References::WhenBuilt(const std::shared_ptr<Reference>& reference, std::function<void()> call) {
  const MutexLock lock(&mutex_);
  if (reference->state_ != Reference::State::kBuilding) return call();
  reference->when_built_.push_back(std::move(call));
}

BuildOutcome References::Await(const std::shared_ptr<Reference>& reference) {
  const MutexLock lock(&mutex_);
  for (bool has_begun = false;; has_begun = true) {
    while (reference->state_ == Reference::State::kBuilding) changed_.Wait(&mutex_);
    if (reference->state_ == Reference::State::kBuilt || has_begun || stopping_) return reference->outcome_;
    Begin(reference);
  }
}

}  // namespace mycc
