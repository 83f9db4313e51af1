#include "process/confine_files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

namespace fs = std::filesystem;

// Folders that are never hidden as somebody's home or current folder.
constexpr const char* kSystemFolders[] = {"/usr", "/lib", "/lib64", "/bin", "/sbin",
                                          "/etc", "/dev", "/proc",  "/sys"};
// Devices without state that stay where there is no device to measure.
constexpr const char* kPlainDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                         "/dev/urandom"};

absl::Status Refused(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

// A mount that is not attached yet, for a place to which a path may lead later.
class DetachedMount {
 public:
  explicit DetachedMount(std::string path)
      : path_(std::move(path)),
        fd_(open_tree(AT_FDCWD, path_.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)) {}
  DetachedMount(DetachedMount&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  DetachedMount& operator=(DetachedMount&&) = delete;
  ~DetachedMount() {
    if (fd_ >= 0) close(fd_);
  }

  // At its own path, which is made where it is hidden.
  absl::Status Attach(bool is_folder) const {
    if (fd_ < 0) return Refused(absl::StrCat("cloning the mount of ", path_));
    std::error_code error;
    if (is_folder) {
      fs::create_directories(path_, error);
    } else if (!fs::exists(path_, error)) {
      close(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
    }
    if (move_mount(fd_, "", AT_FDCWD, path_.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0) return absl::OkStatus();
    return Refused(absl::StrCat("mounting ", path_));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

std::string Resolved(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  return error ? "" : resolved.string();
}

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? "" : Resolved(value);
}

// A folder that a user chose: it may be the system's own, which stays.
bool MayBeHidden(const std::string& folder) {
  if (folder.empty() || folder == "/") return false;
  return std::none_of(std::begin(kSystemFolders), std::end(kSystemFolders), [&folder](const char* system) {
    return LiesIn(folder, system) || LiesIn(system, folder);
  });
}

std::vector<std::string> HiddenFolders(const Confinement& confinement) {
  // Drivers may lie in /run.
  std::vector<std::string> folders = {Resolved("/tmp"), Resolved("/var/tmp"),
                                      Resolved(confinement.has_device ? "/run/user" : "/run")};
  std::erase(folders, "");
  std::vector<std::string> chosen = {FromEnvironment("HOME"), FromEnvironment("TMPDIR"), "/home", "/root"};
  if (confinement.hides_current_folder) chosen.push_back(Resolved("."));
  for (const std::string& folder : chosen) {
    if (MayBeHidden(folder)) folders.push_back(folder);
  }
  for (const std::string& path : confinement.hidden) {
    if (fs::is_directory(path)) folders.push_back(Resolved(path));
  }
  // The outer ones first: what lies in them is gone then.
  std::ranges::sort(folders);
  return folders;
}

absl::Status HideFolder(const std::string& folder) {
  if (!fs::is_directory(folder)) return absl::OkStatus();
  if (mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=256,mode=755") == 0)
    return absl::OkStatus();
  return Refused(absl::StrCat("hiding ", folder));
}

// An empty file in place of one with secrets.
absl::Status HideFile(const std::string& file) {
  if (!fs::is_regular_file(file)) return absl::OkStatus();
  if (mount("/dev/null", file.c_str(), nullptr, MS_BIND, nullptr) == 0) return absl::OkStatus();
  return Refused(absl::StrCat("hiding ", file));
}

absl::Status SetReadOnly(const std::string& path, bool is_read_only) {
  mount_attr attributes = {};
  if (is_read_only) {
    attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  } else {
    attributes.attr_clr = MOUNT_ATTR_RDONLY;
  }
  if (mount_setattr(AT_FDCWD, path.c_str(), is_read_only ? AT_RECURSIVE : 0, &attributes,
                    sizeof(attributes)) == 0)
    return absl::OkStatus();
  return Refused(absl::StrCat("making ", path, is_read_only ? " read-only" : " writable"));
}

absl::Status Attach(const std::vector<DetachedMount>& mounts, bool are_folders) {
  for (const DetachedMount& mount : mounts) MYCC_RETURN_IF_ERROR(mount.Attach(are_folders));
  return absl::OkStatus();
}

}  // namespace

bool LiesIn(const std::string& path, const std::string& folder) {
  return path.compare(0, folder.size(), folder) == 0 &&
         (path.size() == folder.size() || path[folder.size()] == '/' || folder == "/");
}

absl::StatusOr<int> ConfineFiles(const Confinement& confinement, std::string* proc_trouble) {
  // A kernel before 5.12 is recognized before anything is changed.
  mount_attr nothing = {};
  if (mount_setattr(AT_FDCWD, "/", 0, &nothing, sizeof(nothing)) != 0)
    return Refused("changing attributes of mounts");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Refused("taking the mounts for its own");
  const std::vector<std::string> hidden = HiddenFolders(confinement);
  const auto is_hidden = [&hidden](const std::string& path) {
    return std::ranges::any_of(hidden, [&path](const std::string& folder) { return LiesIn(path, folder); });
  };
  // Writable folders come last: they may lie in a folder that stays visible. A folder that is hidden itself
  // does not stay, whoever asks for it: with a program in /tmp that would be all of /tmp.
  std::vector<DetachedMount> folders, devices;
  std::vector<std::string> writable;
  for (const std::string& path : confinement.readable) {
    const std::string resolved = Resolved(path);
    const bool is_itself = std::ranges::find(hidden, resolved) != hidden.end();
    if (is_hidden(resolved) && !is_itself) folders.emplace_back(resolved);
  }
  std::vector<std::string> asked = confinement.writable;
  // A driver names its threads there, and does not start where it cannot.
  if (confinement.has_device) asked.emplace_back("/proc/self/task");
  for (const std::string& path : asked) {
    writable.push_back(Resolved(path));
    if (writable.back().empty()) return Refused(absl::StrCat("finding the folder ", path));
    folders.emplace_back(writable.back());
  }
  for (const std::string& file : confinement.hidden) MYCC_RETURN_IF_ERROR(HideFile(file));
  for (const std::string& folder : hidden) MYCC_RETURN_IF_ERROR(HideFolder(folder));
  if (!confinement.has_device) {
    for (const char* device : kPlainDevices) devices.emplace_back(device);
    MYCC_RETURN_IF_ERROR(HideFolder("/dev"));
  }
  MYCC_RETURN_IF_ERROR(Attach(devices, /*are_folders=*/false));
  MYCC_RETURN_IF_ERROR(Attach(folders, /*are_folders=*/true));
  if (HasOwnProcesses() && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    *proc_trouble = std::string(Refused("listing them alone in /proc").message());
  const int proc = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (proc < 0) return Refused("cloning the mount of /proc");
  MYCC_RETURN_IF_ERROR(SetReadOnly("/", true));
  for (const std::string& path : writable) MYCC_RETURN_IF_ERROR(SetReadOnly(path, false));
  if (confinement.has_device) {
    // A driver's own files; where they have no mount of their own, they are read-only with the rest.
    for (const char* path : {"/dev", "/dev/shm"}) (void)SetReadOnly(path, false);
  }
  if (chdir("/") != 0) return Refused("leaving the current folder");
  return proc;
}

}  // namespace mycc
