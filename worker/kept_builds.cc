#include "worker/kept_builds.h"

#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"

namespace mycc {

KeptBuilds::KeptBuilds(std::string folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {}

// The folder says where a build goes, and `built` where a fetched one lies: neither changes the code.
std::string KeptBuilds::KeyOf(v1::BuildRequest candidate, const std::string& fetched) {
  candidate.clear_directory();
  candidate.set_built(fetched);
  return Sha256Hex(candidate.SerializeAsString());
}

std::optional<BuildOutcome> KeptBuilds::Find(const v1::BuildRequest& candidate, const std::string& fetched,
                                             const std::string& role) {
  BuildOutcome found;
  std::string library;
  {
    const MutexLock lock(&mutex_);
    const auto known = by_key_.find(KeyOf(candidate, fetched));
    if (known == by_key_.end()) return std::nullopt;
    by_use_.splice(by_use_.begin(), by_use_, known->second);
    found = by_use_.front().outcome;
    library = by_use_.front().library;
    found.built.set_library(
        absl::StrCat(folder_, "/", role, "-", files_++, "-", found.built.code_digest(), ".so"));
  }
  if (WriteFileAtomically(found.built.library(), library, /*executable=*/true).ok()) return found;
  // A build says what is wrong with the folder.
  std::error_code ignored;
  std::filesystem::remove(found.built.library(), ignored);
  return std::nullopt;
}

bool KeptBuilds::Has(const v1::BuildRequest& candidate) const {
  const MutexLock lock(&mutex_);
  return by_key_.contains(KeyOf(candidate, ""));
}

void KeptBuilds::Measured(const v1::BuildRequest& candidate, const std::string& fetched,
                          const BuildOutcome& outcome, bool good) {
  const std::string key = KeyOf(candidate, fetched);
  const MutexLock lock(&mutex_);
  const auto known = by_key_.find(key);
  if (!good || !outcome.ok()) {
    if (known != by_key_.end()) Forget(known->second);
    return;
  }
  if (known != by_key_.end()) return;
  absl::StatusOr<std::string> library = ReadFile(outcome.built.library(), limits_.bytes);
  if (!library.ok()) return;
  Kept& kept = by_use_.emplace_front(Kept{key, outcome, *std::move(library)});
  kept.outcome.built.clear_library();
  by_key_[key] = by_use_.begin();
  bytes_ += static_cast<int64_t>(kept.library.size());
  while (by_use_.size() > limits_.builds || bytes_ > limits_.bytes) Forget(std::prev(by_use_.end()));
}

void KeptBuilds::Forget(Place kept) {
  bytes_ -= static_cast<int64_t>(kept->library.size());
  by_key_.erase(kept->key);
  by_use_.erase(kept);
}

}  // namespace mycc
