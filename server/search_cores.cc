#include "server/search_cores.h"

#include <algorithm>
#include <thread>

namespace mycc {

SearchCores::SearchCores(int cores)
    : cores_(cores > 0 ? cores : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

int SearchCores::most_of_call() const { return std::min(cores_, kMostOfCall); }

SearchCores::Lease::Lease(SearchCores* cores) : cores_(cores) {
  const MutexLock lock(&cores_->mutex_);
  ++cores_->calls_;
  const int share = std::min(cores_->most_of_call(), cores_->cores_ / cores_->calls_);
  count_ = std::max(1, std::min(share, cores_->cores_ - cores_->taken_));
  cores_->taken_ += count_;
}

SearchCores::Lease::~Lease() {
  const MutexLock lock(&cores_->mutex_);
  --cores_->calls_;
  cores_->taken_ -= count_;
}

}  // namespace mycc
