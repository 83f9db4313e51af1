// The processors that the searches of a server share. A call of a search takes those that are free and gives
// them back when it ends: a job alone scores and lowers its candidates, and trains its models, on all of
// them. Jobs that search at the same time divide them. Thread rule: thread-safe.
#pragma once

#include "base/mutex.h"

namespace mycc {

class SearchCores {
 public:
  // `cores`: of the host; 0: as many as the system says.
  explicit SearchCores(int cores = 0);

  // More gain nothing: the parts of a proposal that one thread does take longer than the rest then.
  static constexpr int kMostOfCall = 16;
  int most_of_call() const;

  // A call's share, from construction to destruction.
  class Lease {
   public:
    // Takes an even share of all, as far as it is free; one processor where none is free, so that no search
    // waits for another. So calls that overlap use at most one more each than there are.
    explicit Lease(SearchCores* cores);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    int count() const { return count_; }

   private:
    SearchCores* const cores_;
    int count_ = 1;
  };

 private:
  const int cores_;
  Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mycc
