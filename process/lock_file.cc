#include "process/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mycc {
namespace {

std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// An inode's number is not the file's alone: file systems have their own.
bool HasOpen(pid_t pid, const struct stat& file) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), error)) {
    struct stat open_file;
    if (stat(entry.path().c_str(), &open_file) == 0 && open_file.st_dev == file.st_dev &&
        open_file.st_ino == file.st_ino)
      return true;
  }
  return false;
}

// "71 (mycc-tune) T 1 ...": the name may hold anything, a parenthesis among it.
LockHolder Describe(pid_t pid) {
  LockHolder holder{.pid = pid};
  const std::string stat = ReadSystemFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat.size()) return holder;
  holder.program = stat.substr(open + 1, close - open - 1);
  const char state = stat[close + 2];
  holder.is_stopped = state == 'T' || state == 't';
  return holder;
}

}  // namespace

std::string LockPath(const std::string& name) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && access(runtime, W_OK) == 0 ? runtime : "/tmp";
  return absl::StrCat(folder, "/mycc-tune-", name, "-", getuid(), ".lock");
}

int OpenLockFile(const std::string& path) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

std::string LockHolder::Words() const {
  return absl::StrCat("process ", pid, program.empty() ? "" : absl::StrCat(" (", program, ")"),
                      is_stopped ? ", which is stopped" : "");
}

std::vector<LockHolder> HoldersOf(const std::string& path) {
  std::vector<LockHolder> holders;
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return holders;
  for (const pid_t pid : PidsInLocks(ReadSystemFile("/proc/locks"), file.st_ino)) {
    if (HasOpen(pid, file)) holders.push_back(Describe(pid));
  }
  return holders;
}

// "4: FLOCK  ADVISORY  WRITE 71 fe:00:2146460 0 EOF", or "4: -> FLOCK ..." of one that waits.
std::vector<pid_t> PidsInLocks(const std::string& locks, uint64_t inode) {
  std::vector<pid_t> pids;
  for (const absl::string_view line : absl::StrSplit(locks, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 6 || words[1] != "FLOCK") continue;
    const std::vector<std::string> file = absl::StrSplit(words[5], ':');
    pid_t pid = 0;
    uint64_t number = 0;
    if (absl::SimpleAtoi(words[4], &pid) && absl::SimpleAtoi(file.back(), &number) && number == inode &&
        pid > 0)
      pids.push_back(pid);
  }
  return pids;
}

}  // namespace mycc
