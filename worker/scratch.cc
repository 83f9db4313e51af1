#include "worker/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr char kPrefix[] = "mycc-worker-";

// A lock on the folder's `lock` file; -1 when somebody holds it, or there is none.
int TryLock(const std::string& folder, int flags) {
  const int fd = open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

void RemoveAbandoned(const std::string& parent) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    // Another user's folder cannot be locked, nor a live worker's.
    const int fd = TryLock(entry.path().string(), 0);
    if (fd < 0) continue;
    std::filesystem::remove_all(entry.path(), error);
    close(fd);
  }
}

}  // namespace

absl::StatusOr<ScratchFolder> ScratchFolder::Create() {
  const char* tmpdir = std::getenv("TMPDIR");
  const std::string parent = tmpdir != nullptr && *tmpdir != '\0' ? tmpdir : "/tmp";
  RemoveAbandoned(parent);
  // Another worker may take a folder for abandoned between the making of its lock file and the lock.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string path = absl::StrCat(parent, "/", kPrefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr)
      return absl::ErrnoToStatus(errno, absl::StrCat("making a folder in ", parent));
    const int lock = TryLock(path, O_CREAT);
    struct stat file;
    if (lock >= 0 && fstat(lock, &file) == 0 && file.st_nlink > 0) return ScratchFolder(path, lock);
    ScratchFolder{path, lock};  // removes what is left
  }
  return absl::UnavailableError(absl::StrCat("cannot lock a new folder in ", parent));
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", path));
  struct stat parent;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (stat(folder.c_str(), &parent) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the folder ", folder));
  if (parent.st_uid == geteuid() || chown(path.c_str(), parent.st_uid, parent.st_gid) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot give away the folder ", path));
}

absl::StatusOr<std::string> CacheFolder(const std::string& name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr && *cache != '\0' ? cache : absl::StrCat(home != nullptr ? home : "/tmp", "/.cache");
  const std::string path = absl::StrCat(root, "/mycc/", name);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return absl::UnavailableError(absl::StrCat("cannot make the folder ", path, ": ", error.message()));
  return path;
}

void TrimCache(const std::string& folder, int64_t most_bytes) {
  struct File {
    std::filesystem::file_time_type used;
    std::filesystem::path path;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code gone;  // others trim, too
    const File file{entry.last_write_time(gone), entry.path(), static_cast<int64_t>(entry.file_size(gone))};
    if (gone || !entry.is_regular_file(gone)) continue;
    files.push_back(file);
    bytes += file.bytes;
  }
  std::ranges::sort(files, [](const File& a, const File& b) { return a.used < b.used; });
  for (size_t i = 0; i + 1 < files.size() && bytes > most_bytes; ++i) {
    if (std::filesystem::remove(files[i].path, error)) bytes -= files[i].bytes;
  }
}

void MarkUsed(const std::string& path) {
  std::error_code ignored;
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
}

}  // namespace mycc
