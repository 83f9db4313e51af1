#include "process/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "process/child.h"
#include "process/confine_calls.h"
#include "process/confine_files.h"
#include "process/limits.h"

namespace mycc {
namespace {

constexpr int kChannel = 3;          // to the worker
constexpr uid_t kNobody = 65534;     // the system's user, and group, of no rights
constexpr double kTellSeconds = 20;  // for a child to say what is missing

bool has_own_processes = false;
std::optional<CallFilter> request_filter, reading_filter;

// The missing measures, in the order of the measures.
class Missing {
 public:
  void Add(const std::string& measure, const std::string& why) {
    words_.push_back(absl::StrCat(measure, " (", why, ")"));
  }
  void Add(const std::string& measure, const absl::Status& why) { Add(measure, std::string(why.message())); }
  void AddLast(const std::string& measure, const std::string& call) {
    Add(measure, absl::ErrnoToStatus(errno, call));
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
};

absl::Status WriteTo(int folder, const std::string& file, const std::string& text) {
  const int fd = openat(folder, file.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const absl::Status status =
      written ? absl::OkStatus() : absl::ErrnoToStatus(errno, absl::StrCat("writing ", file, " of /proc"));
  if (fd >= 0) close(fd);
  return status;
}

// A user namespace in which this process is the user that it was, with all capabilities for the namespaces
// that it makes. `proc`: /proc.
absl::Status EnterUserNamespace(int proc) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return absl::ErrnoToStatus(errno, "making a user namespace");
  prctl(PR_SET_DUMPABLE, 1);  // else the files below are root's
  MYCC_RETURN_IF_ERROR(WriteTo(proc, "self/setgroups", "deny"));
  MYCC_RETURN_IF_ERROR(WriteTo(proc, "self/uid_map", absl::StrCat(user, " ", user, " 1")));
  return WriteTo(proc, "self/gid_map", absl::StrCat(group, " ", group, " 1"));
}

// Whether the user of no rights may write to the folder. It is tried, since each folder above counts as well.
absl::Status CheckNobodyMayWrite(const std::string& folder) {
  struct stat info;
  if (stat(folder.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, folder);
  if (info.st_uid != kNobody)
    return absl::PermissionDeniedError(absl::StrCat(folder, " belongs to user ", info.st_uid));
  if (setegid(kNobody) != 0 || seteuid(kNobody) != 0) return absl::ErrnoToStatus(errno, "changing the user");
  const bool may = faccessat(AT_FDCWD, folder.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0;
  const absl::Status status =
      may ? absl::OkStatus() : absl::ErrnoToStatus(errno, absl::StrCat("it may not write to ", folder));
  if (seteuid(0) != 0 || setegid(0) != 0) _exit(1);  // it was root a moment ago
  return status;
}

absl::Status BecomeNobody(const std::vector<std::string>& writable) {
  if (setgroups(0, nullptr) != 0) return absl::ErrnoToStatus(errno, "leaving its groups");
  for (const std::string& folder : writable) MYCC_RETURN_IF_ERROR(CheckNobodyMayWrite(folder));
  if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0)
    return absl::ErrnoToStatus(errno, "changing the user");
  return absl::OkStatus();
}

// A bound on threads and processes. It must hold for a namespace: a user's other processes would count.
void LimitProcesses() {
  constexpr rlim_t kOthers = 256, kForEachCpu = 4;
  const rlim_t most = kOthers + kForEachCpu * std::thread::hardware_concurrency();
  const rlimit limit{most, most};
  setrlimit(RLIMIT_NPROC, &limit);  // fails only above a limit that is stricter already
}

absl::Status DropPrivileges() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    prctl(PR_CAPBSET_DROP, capability);  // refused to those who have none to drop
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0) return absl::ErrnoToStatus(errno, "dropping capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return absl::ErrnoToStatus(errno, "no_new_privs");
  return absl::OkStatus();
}

absl::Status FilterCalls(bool has_device) {
  MYCC_ASSIGN_OR_RETURN(const CallFilter common, CommonFilter(has_device));
  if (!has_device) {
    MYCC_ASSIGN_OR_RETURN(request_filter, RequestFilter(/*only_reads=*/false));
    MYCC_ASSIGN_OR_RETURN(reading_filter, RequestFilter(/*only_reads=*/true));
  }
  return Install(common);
}

// Waits for the child, and ends as it ended. The worker kills both.
[[noreturn]] void Keep(pid_t child) {
  close(kChannel);  // its end is heard when the child ends
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

// In the keeper's child from here on, where the kernel grants a namespace.
void EnterProcessNamespace(Missing* missing) {
  if (unshare(CLONE_NEWPID) != 0) return missing->AddLast("processes", "making a namespace");
  const pid_t child = fork();
  if (child > 0) Keep(child);
  if (child < 0) return missing->AddLast("processes", "making a process in a namespace");
  has_own_processes = true;
}

std::vector<std::string> TakeMeasures(const Confinement& confinement) {
  Missing missing;
  const bool is_root = geteuid() == 0;
  bool is_nobody = false, has_own_user = false;
  bool has_own_mounts = unshare(CLONE_NEWNS) == 0;
  if (!has_own_mounts) {
    // Without a privilege for namespaces, a user namespace gives it.
    const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (is_root && !confinement.has_device) is_nobody = BecomeNobody(confinement.writable).ok();
    const absl::Status entered = EnterUserNamespace(proc);
    close(proc);
    has_own_user = entered.ok();
    has_own_mounts = has_own_user && unshare(CLONE_NEWNS) == 0;
    if (!has_own_user) missing.Add("namespaces", entered);
  }
  if (unshare(CLONE_NEWNET) != 0) missing.AddLast("network", "making a namespace");
  if (unshare(CLONE_NEWIPC) != 0) missing.AddLast("shared memory of others", "making a namespace");
  if (!confinement.has_device) EnterProcessNamespace(&missing);

  std::string proc_trouble;
  absl::StatusOr<int> proc = absl::UnavailableError("it has no mounts of its own");
  if (has_own_mounts) proc = ConfineFiles(confinement, &proc_trouble);
  if (!proc.ok()) missing.Add("files", proc.status());
  if (!proc_trouble.empty()) missing.Add("list of processes", proc_trouble);

  if (is_root && !is_nobody && !confinement.has_device) {
    const absl::Status became = BecomeNobody(confinement.writable);
    is_nobody = became.ok();
    if (!is_nobody) missing.Add("user", became);
    if (is_nobody && !has_own_user && proc.ok()) has_own_user = EnterUserNamespace(*proc).ok();
  }
  if (proc.ok()) close(*proc);
  if (has_own_user && !confinement.has_device) {
    LimitProcesses();
  } else if (!confinement.has_device) {
    missing.Add("number of processes", "making a user namespace");
  }
  if (const absl::Status dropped = DropPrivileges(); !dropped.ok()) missing.Add("privileges", dropped);
  if (const absl::Status filtered = FilterCalls(confinement.has_device); !filtered.ok())
    missing.Add("system calls", filtered);
  return missing.words();
}

}  // namespace

std::vector<std::string> Confinement::ToArguments() const {
  if (mode == ConfinementMode::kOff) return {};
  std::vector<std::string> arguments = {mode == ConfinementMode::kRequired ? "required" : "possible"};
  if (has_device) arguments.emplace_back("device");
  if (hides_current_folder) arguments.emplace_back("current");
  for (const std::string& path : writable) arguments.push_back("writable=" + path);
  for (const std::string& path : readable) arguments.push_back("readable=" + path);
  for (const std::string& path : hidden) arguments.push_back("hidden=" + path);
  return arguments;
}

absl::StatusOr<Confinement> Confinement::FromArguments(const std::vector<std::string>& arguments) {
  Confinement confinement;
  for (const std::string& argument : arguments) {
    absl::string_view path = argument;
    if (argument == "required") {
      confinement.mode = ConfinementMode::kRequired;
    } else if (argument == "possible") {
      confinement.mode = ConfinementMode::kWherePossible;
    } else if (argument == "device") {
      confinement.has_device = true;
    } else if (argument == "current") {
      confinement.hides_current_folder = true;
    } else if (absl::ConsumePrefix(&path, "writable=")) {
      confinement.writable.emplace_back(path);
    } else if (absl::ConsumePrefix(&path, "readable=")) {
      confinement.readable.emplace_back(path);
    } else if (absl::ConsumePrefix(&path, "hidden=")) {
      confinement.hidden.emplace_back(path);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("`", argument, "` says nothing about confinement"));
    }
  }
  return confinement;
}

std::vector<std::string> Confine(const Confinement& confinement, pid_t parent) {
  if (confinement.mode == ConfinementMode::kOff) return {};
  const mode_t mask = umask(022);
  std::vector<std::string> missing = TakeMeasures(confinement);
  umask(mask);
  // Others of its user may not look into it, and its requests cannot.
  prctl(PR_SET_DUMPABLE, 0);
  // The system forgot the parent when rights were given up. A parent outside its namespace has no number.
  const bool has_parent = DieWithParent(has_own_processes ? 0 : parent);
  if (!has_parent) _exit(1);
  if (confinement.mode == ConfinementMode::kRequired && !missing.empty()) {
    fprintf(stderr, "mycc-tune: candidates are not confined: %s\n", absl::StrJoin(missing, "; ").c_str());
    _exit(1);
  }
  return missing;
}

void ConfineRequest(bool only_reads) {
  const std::optional<CallFilter>& filter = only_reads ? reading_filter : request_filter;
  if (!filter) return;
  const absl::Status installed = Install(*filter);
  if (installed.ok()) return;
  fprintf(stderr, "%s\n", std::string(installed.message()).c_str());
  _exit(1);
}

bool HasOwnProcesses() { return has_own_processes; }

bool KillRequest(pid_t child) {
  kill(has_own_processes ? -1 : -child, SIGKILL);  // as process 1, it does not reach itself
  return has_own_processes;
}

int ConfineMain(const Confinement& confinement, pid_t parent) {
  const std::vector<std::string> missing = Confine(confinement, parent);
  return WriteMessage(kChannel, absl::StrJoin(missing, "\n")).ok() ? 0 : 1;
}

absl::StatusOr<std::vector<std::string>> MissingMeasures(const Confinement& confinement) {
  Confinement asked = confinement;
  asked.mode = ConfinementMode::kWherePossible;  // it is to tell
  Child child({.command = kConfineCommand, .arguments = asked.ToArguments(), .environment = {}});
  MYCC_RETURN_IF_ERROR(child.Start());
  MYCC_ASSIGN_OR_RETURN(const std::string words, child.Read(After(kTellSeconds)));
  if (words.empty()) return std::vector<std::string>();
  return std::vector<std::string>(absl::StrSplit(words, '\n'));
}

void GiveToChildren(const std::string& folder) {
  if (geteuid() != 0) return;
  // A GPU's runner stays root's, and has lost the privilege to pass where it has no permission: the group has
  // it. Where the folder cannot be given away, children stay root's, and the measure is told as missing.
  if (chown(folder.c_str(), kNobody, getegid()) == 0) (void)chmod(folder.c_str(), S_IRWXU | S_IRWXG);
}

}  // namespace mycc
