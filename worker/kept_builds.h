// The libraries of the candidates that were measured lately, so that a candidate that comes again is not
// built again: a finalist, a leader that is measured once more, the same candidate of another job.
//
// A library is kept in memory, byte for byte, once its candidate was measured without a failure, and it is
// forgotten when the candidate fails later. Each use gets a file of its own, so that no use of a candidate
// reaches the next one. Candidates are equal when they have the same workload, target and trace, and the same
// digest where another host has built them. The toolchain and the confinement are the process's, with which
// all of it ends. Thread rule: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "proto/measure.pb.h"
#include "worker/build_pool.h"

namespace mycc {

class KeptBuilds {
 public:
  struct Limits {
    size_t builds = 256;
    int64_t bytes = int64_t{64} << 20;
  };

  // Files are written to `folder`, which must exist; whoever gets one removes it.
  KeptBuilds(std::string folder, Limits limits);
  explicit KeptBuilds(std::string folder) : KeptBuilds(std::move(folder), Limits()) {}
  KeptBuilds(const KeptBuilds&) = delete;
  KeptBuilds& operator=(const KeptBuilds&) = delete;

  // The build of an equal candidate, its library in a new file. Its seconds are those of the build that made
  // it. Nullopt: it is to be built. `fetched`: the digest of what another host has built of the candidate;
  // empty: nothing. `role` begins the file's name, and its code's digest ends it.
  std::optional<BuildOutcome> Find(const v1::BuildRequest& candidate, const std::string& fetched = "",
                                   const std::string& role = "kept");
  bool Has(const v1::BuildRequest& candidate) const;
  // The candidate was built, or found, and then measured: it is kept where it is `good`, else forgotten.
  // Those that were used longest ago make room.
  void Measured(const v1::BuildRequest& candidate, const std::string& fetched, const BuildOutcome& outcome,
                bool good);

 private:
  struct Kept {
    std::string key;
    BuildOutcome outcome;
    std::string library;  // its bytes
  };
  using Place = std::list<Kept>::iterator;

  static std::string KeyOf(v1::BuildRequest candidate, const std::string& fetched);
  void Forget(Place kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const Limits limits_;
  mutable Mutex mutex_;
  std::list<Kept> by_use_ ABSL_GUARDED_BY(mutex_);  // the one used last stands first
  std::unordered_map<std::string, Place> by_key_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t files_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mycc
