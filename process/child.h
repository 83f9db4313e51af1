// A child process of the worker: this program again under a hidden command, with a message channel
// (process/framing.h) at descriptor 3. Thread rule: thread-compatible. Calls come from one thread that
// outlives the child, because the child dies with the thread that spawned it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "process/framing.h"

namespace mycc {

// The hidden commands.
inline constexpr char kBuildCommand[] = "internal-build";
inline constexpr char kRunCommand[] = "internal-run";
inline constexpr char kGpuRunCommand[] = "internal-gpu-run";

struct ChildCommand {
  std::string command;                   // a hidden command of this program
  std::vector<std::string> arguments;    // after the number of this process, which comes first
  std::vector<std::string> environment;  // added to this process' own ("NAME=value")
  bool keeps_output = false;             // Output() gets its output, in place of this process's own
};

class Child {
 public:
  explicit Child(ChildCommand command) : command_(std::move(command)) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // REQUIRES: it is not running.
  absl::Status Start();
  // Ends the child with its process group. No effect where none runs.
  void Signal();
  // Signal, and waits until the system has freed their resources. No effect where none runs.
  void Kill();
  // The wait status of a child that ends by itself within `seconds`; nullopt when it does not.
  std::optional<int> Reap(double seconds);

  absl::Status Write(const std::string& message, Deadline deadline = kNoDeadline) {
    return WriteMessage(channel_, message, deadline);
  }
  absl::StatusOr<std::string> Read(Deadline deadline) { return ReadMessage(channel_, deadline); }

  const ChildCommand& command() const { return command_; }
  pid_t pid() const { return pid_; }  // 0: not running
  // The last part of the output since Start, also of a child that has ended.
  std::string Output() const;

 private:
  const ChildCommand command_;
  pid_t pid_ = 0;
  int channel_ = -1;
  int output_ = -1;  // a file in memory
};

}  // namespace mycc
