// Keeps what build-only workers have built, by the SHA-256 of its bytes, in a folder beside the log:
//
//   FILE.artifacts/DIGEST   the bytes
//   FILE.artifacts/index    a line for each candidate that was built: CANDIDATE DIGEST
//
// A candidate is named by a digest of its workload, target and trace, so an equal one of another job is built
// once. The folder is bounded in bytes, and what was used longest ago goes first. Everything in it can be
// made again: nothing waits for the disk, a damaged file is removed when it is read, and a lost line costs a
// build. Thread rule: thread-safe. Find takes no time; Put and Get write and read a file.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace mycc {

class ArtifactStore {
 public:
  ArtifactStore(std::string folder, int64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  ArtifactStore(const ArtifactStore&) = delete;
  ArtifactStore& operator=(const ArtifactStore&) = delete;

  // Learns what an earlier server left; OK where there is no folder, which the first Put makes.
  absl::Status Open();

  static std::string CandidateOf(const std::string& workload, const std::string& target,
                                 const std::string& trace);
  // The digest of what was built of a candidate; empty: nothing.
  std::string Find(const std::string& candidate) const;
  // Keeps the bytes, and returns their digest. Errors: those of files, ResourceExhausted among them.
  absl::StatusOr<std::string> Put(const std::string& candidate, std::string_view bytes);
  // NotFound where there is no such file, or none with these bytes any more.
  absl::StatusOr<std::string> Get(const std::string& digest);
  // The build of the candidate is not to be trusted.
  void Forget(const std::string& candidate);

  int64_t bytes() const;

 private:
  struct File {
    int64_t bytes = 0;
    std::vector<std::string> candidates;
    std::list<std::string>::iterator place;  // in by_use_
  };

  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  void Add(const std::string& digest, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Name(const std::string& candidate, const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Use(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadIndex() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the index anew where most of its lines are of files that are gone.
  absl::Status TrimIndex() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AppendToIndex(const std::string& candidate, const std::string& digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const int64_t most_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);           // by digest
  std::unordered_map<std::string, std::string> digests_ ABSL_GUARDED_BY(mutex_);  // by candidate
  std::list<std::string> by_use_ ABSL_GUARDED_BY(mutex_);                         // the oldest first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t lines_ ABSL_GUARDED_BY(mutex_) = 0;  // of the index
};

}  // namespace mycc
