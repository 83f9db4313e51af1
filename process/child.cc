#include "process/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr off_t kOutputBytes = 4096;

// Its own name wins over an inherited one.
std::vector<std::string> MergeEnvironment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string inherited = *entry;
    const std::string prefix = inherited.substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : added) replaced |= own.rfind(prefix, 0) == 0;
    if (!replaced) merged.push_back(inherited);
  }
  return merged;
}

// Spawns `argv` with `channel` as its descriptor 3, and no others of ours. It prints to `output`.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                            int channel, int output) {
  std::vector<char*> arguments, variables;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  for (const std::string& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, channel, 3);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::UnavailableError(absl::StrCat("starting ", argv[1], ": ", strerror(error)));
  return pid;
}

}  // namespace

Child::~Child() {
  Kill();
  if (output_ >= 0) close(output_);
}

absl::Status Child::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "making a socket pair");
  const absl::Cleanup close_child_end = [&ends] { close(ends[1]); };
  channel_ = ends[0];
  if (command_.keeps_output) {
    if (output_ >= 0) close(output_);
    output_ = memfd_create("output", MFD_CLOEXEC);
    if (output_ < 0) return absl::ErrnoToStatus(errno, "making a file for what the process prints");
  }
  std::vector<std::string> argv = {"mycc-tune", command_.command, absl::StrCat(getpid())};
  argv.insert(argv.end(), command_.arguments.begin(), command_.arguments.end());
  const absl::StatusOr<pid_t> pid =
      Spawn(argv, MergeEnvironment(command_.environment), ends[1], command_.keeps_output ? output_ : 2);
  if (!pid.ok()) {
    Kill();
    return pid.status();
  }
  pid_ = *pid;
  return absl::OkStatus();
}

void Child::Signal() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

void Child::Kill() {
  if (channel_ >= 0) close(channel_);
  channel_ = -1;
  Signal();
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

std::string Child::Output() const {
  const off_t size = output_ < 0 ? 0 : lseek(output_, 0, SEEK_END);
  std::string end(kOutputBytes, '\0');
  const ssize_t got = pread(output_, end.data(), end.size(), std::max<off_t>(0, size - kOutputBytes));
  end.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  return end;
}

std::optional<int> Child::Reap(double seconds) {
  constexpr auto kPause = std::chrono::milliseconds(1);
  for (const Deadline end = After(seconds); pid_ > 0 && std::chrono::steady_clock::now() < end;) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      kill(-pid_, SIGKILL);  // what it left behind
      pid_ = 0;
      return status;
    }
    std::this_thread::sleep_for(kPause);
  }
  return std::nullopt;
}

}  // namespace mycc
