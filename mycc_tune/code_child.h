// A process that says which code this build makes of a schedule. A trace that crashes
// the compiler, or makes it loop, costs one answer. Thread rule: RunCodeChild is called first in main, before
// any thread; a CodeProcess belongs to one thread, which outlives it.
#pragma once

#include <optional>
#include <string>

#include "process/fork_server.h"
#include "proto/records.pb.h"

namespace mycc {

// The code that this build makes of a record's trace.
struct CodeNow {
  enum class Kind {
    kDigest,   // code; `text` is its digest
    kRefused,  // none; `text` says why
    kUnknown,  // this host cannot tell, since it lacks the compiler behind the target
  };
  Kind kind = Kind::kUnknown;
  std::string text;
};

class CodeProcess {
 public:
  CodeProcess();
  // One schedule after the other, each under limits of time and memory.
  CodeNow CodeOf(const v1::Record& record);

 private:
  ForkServer server_;
};

// Runs the hidden command of such a process, and returns the program's exit code. Nullopt: `argv` names
// another.
std::optional<int> RunCodeChild(int argc, char** argv);

}  // namespace mycc
