#include "server/artifact_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace mycc {
namespace {

namespace fs = std::filesystem;

constexpr char kIndex[] = "index";
constexpr size_t kDigestDigits = 64;
constexpr int64_t kMostIndexBytes = int64_t{256} << 20;
constexpr size_t kSpareLines = 100;  // of the index: it is not written anew for a few

bool IsHexDigest(std::string_view text) {
  return text.size() == kDigestDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::Status NoArtifact(const std::string& digest) {
  return absl::NotFoundError(absl::StrCat("no artifact ", digest, "; expected the worker to build it"));
}

}  // namespace

std::string ArtifactStore::CandidateOf(const std::string& workload, const std::string& target,
                                       const std::string& trace) {
  return Sha256Hex(absl::StrCat(workload.size(), " ", target.size(), "\n", workload, target, trace));
}

absl::Status ArtifactStore::Open() {
  const MutexLock lock(&mutex_);
  std::error_code error;
  if (!fs::is_directory(folder_, error)) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(LoadFiles());
  MYCC_RETURN_IF_ERROR(LoadIndex());
  Trim();
  return absl::OkStatus();
}

absl::Status ArtifactStore::LoadFiles() {
  struct Found {
    fs::file_time_type used;
    std::string digest;
    int64_t bytes;
  };
  std::vector<Found> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename();
    if (IsHexDigest(name) && entry.is_regular_file(error))
      found.push_back({entry.last_write_time(error), name, static_cast<int64_t>(entry.file_size(error))});
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", folder_, ": ", error.message()));
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return std::tie(a.used, a.digest) < std::tie(b.used, b.digest);
  });
  for (const Found& file : found) Add(file.digest, file.bytes);
  return absl::OkStatus();
}

// Lines of files that are gone, and those that are cut short, are dropped.
absl::Status ArtifactStore::LoadIndex() {
  const absl::StatusOr<std::string> text = ReadFile(PathOf(kIndex), kMostIndexBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(text.status());
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line); ++lines_) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const bool is_whole = words.size() == 2 && IsHexDigest(words[0]) && files_.contains(words[1]);
    if (is_whole) Name(words[0], words[1]);
  }
  return TrimIndex();
}

absl::Status ArtifactStore::TrimIndex() {
  if (lines_ <= 2 * digests_.size() + kSpareLines) return absl::OkStatus();
  std::string kept;
  for (const auto& [named, is] : digests_) absl::StrAppend(&kept, named, " ", is, "\n");
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kIndex), kept));
  lines_ = digests_.size();
  return absl::OkStatus();
}

void ArtifactStore::Add(const std::string& digest, int64_t bytes) {
  const auto [file, is_new] = files_.try_emplace(digest);
  if (!is_new) return Use(digest);
  file->second.bytes = bytes;
  file->second.place = by_use_.insert(by_use_.end(), digest);
  bytes_ += bytes;
}

void ArtifactStore::Name(const std::string& candidate, const std::string& digest) {
  std::string& known = digests_[candidate];
  if (known == digest) return;
  known = digest;
  files_.at(digest).candidates.push_back(candidate);
}

void ArtifactStore::Use(const std::string& digest) {
  by_use_.splice(by_use_.end(), by_use_, files_.at(digest).place);
  std::error_code ignored;
  fs::last_write_time(PathOf(digest), fs::file_time_type::clock::now(), ignored);
}

void ArtifactStore::Remove(const std::string& digest) {
  const auto found = files_.find(digest);
  if (found == files_.end()) return;
  for (const std::string& candidate : found->second.candidates) {
    const auto named = digests_.find(candidate);
    if (named != digests_.end() && named->second == digest) digests_.erase(named);
  }
  bytes_ -= found->second.bytes;
  by_use_.erase(found->second.place);
  files_.erase(found);
  std::error_code ignored;
  fs::remove(PathOf(digest), ignored);
}

void ArtifactStore::Trim() {
  while (bytes_ > most_bytes_ && by_use_.size() > 1) Remove(std::string(by_use_.front()));
}

std::string ArtifactStore::Find(const std::string& candidate) const {
  const MutexLock lock(&mutex_);
  const auto found = digests_.find(candidate);
  return found == digests_.end() ? "" : found->second;
}

absl::Status ArtifactStore::AppendToIndex(const std::string& candidate, const std::string& digest) {
  std::ofstream index(PathOf(kIndex), std::ios::app);
  index << candidate << " " << digest << "\n" << std::flush;
  ++lines_;
  if (index) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot append to ", PathOf(kIndex)));
}

absl::StatusOr<std::string> ArtifactStore::Put(const std::string& candidate, std::string_view bytes) {
  const std::string digest = Sha256Hex(bytes);
  const MutexLock lock(&mutex_);
  if (!files_.contains(digest)) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder_, ": ", error.message()));
    MYCC_RETURN_IF_ERROR(WriteFileAtomically(PathOf(digest), bytes));
  }
  Add(digest, static_cast<int64_t>(bytes.size()));
  const auto known = digests_.find(candidate);
  const bool is_new = known == digests_.end() || known->second != digest;
  if (is_new) {
    Name(candidate, digest);
    MYCC_RETURN_IF_ERROR(AppendToIndex(candidate, digest));
  }
  Trim();
  MYCC_RETURN_IF_ERROR(TrimIndex());
  return digest;
}

absl::StatusOr<std::string> ArtifactStore::Get(const std::string& digest) {
  {
    const MutexLock lock(&mutex_);
    if (!files_.contains(digest)) return NoArtifact(digest);
    Use(digest);
  }
  absl::StatusOr<std::string> bytes = ReadFile(PathOf(digest));
  if (bytes.ok() && Sha256Hex(*bytes) == digest) return bytes;
  const MutexLock lock(&mutex_);
  Remove(digest);
  return NoArtifact(digest);
}

void ArtifactStore::Forget(const std::string& candidate) {
  const MutexLock lock(&mutex_);
  const auto named = digests_.find(candidate);
  if (named != digests_.end()) Remove(std::string(named->second));
}

int64_t ArtifactStore::bytes() const {
  const MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace mycc
