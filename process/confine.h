// Confines a child process of the worker to what building and running candidates takes, by the kernel's own
// means. It happens once, before a fork server answers, so that its requests cost nothing more:
//
//   worker --spawn--> keeper --fork--> fork server: process 1 of its own namespace --fork--> one request
//                     (waits, and ends as the fork server ends)
//
// The measures; each is taken even where the kernel refuses another:
//   network       a network namespace without devices; System V IPC of its own
//   processes     a namespace of processes: a request sees, and can signal, its own alone
//   files         everything is read-only but the writable folders; home, temporary and run-time folders, the
//                 current folder and, unless there is a device, /dev are hidden
//   user          root becomes user 65534, for whom a namespace counts processes and threads
//   privileges    no capabilities, none to be gained
//   system calls  no sockets, tracing, mounts, BPF, performance counters, keys, kernel modules and the like
//
// Thread rule: called first in a child's main, before any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

enum class ConfinementMode {
  kOff,
  kWherePossible,  // a measure that the kernel refuses is done without
  kRequired,       // a measure that the kernel refuses ends the child
};

struct Confinement {
  ConfinementMode mode = ConfinementMode::kOff;
  // A GPU's runner: it keeps /dev, its user, its view of processes, and sockets of this host.
  bool has_device = false;
  bool hides_current_folder = false;
  std::vector<std::string> writable;  // folders
  std::vector<std::string> readable;  // folders that stay visible wherever they are
  std::vector<std::string> hidden;    // files and folders beside those above

  std::vector<std::string> ToArguments() const;
  // InvalidArgument for words that ToArguments does not make.
  static absl::StatusOr<Confinement> FromArguments(const std::vector<std::string>& arguments);
};

// Confines this process, and returns in the one that goes on. The missing measures, and why, in
// words; one ends the process under kRequired. `parent`: dies with it.
std::vector<std::string> Confine(const Confinement& confinement, pid_t parent);

// In the process of one request: it makes no processes and runs no programs; one that only reads changes no
// file. No effect where Confine did not filter system calls.
void ConfineRequest(bool only_reads);

// Whether this process is the first one of a namespace of processes that Confine made.
bool HasOwnProcesses();
// Kills whatever a request left; `child` leads its group. True when others than `child` are to be reaped,
// too.
bool KillRequest(pid_t child);

// The hidden command that says what Confine finds missing, and how it is asked.
inline constexpr char kConfineCommand[] = "internal-confine";
int ConfineMain(const Confinement& confinement, pid_t parent);
// The missing measures of a child that is confined so. Unavailable when the child cannot tell.
absl::StatusOr<std::vector<std::string>> MissingMeasures(const Confinement& confinement);

// Lets confined children write to the folder: where this process is root's, it becomes their user's.
void GiveToChildren(const std::string& folder);

}  // namespace mycc
