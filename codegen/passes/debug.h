// Messages of the compiler about its work, to the standard error. Printing only: nothing here changes
// generated code. A program's main sets it once, before other threads start; the library never reads the
// environment.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// The levels of MYCC_DEBUG; each includes those below it.
enum DebugLevel {
  kDebugChosen = 1,      // the schedule of each kernel, why it was chosen, and the kernel's source
  kDebugCandidates = 2,  // every schedule that was looked at, a line each
  kDebugSteps = 3,       // the decisions and steps of each of them
  kDebugCode = 4,        // the generated code
  kDebugPasses = 5,      // the IR after each pass, "(unchanged)" where it is the same
};

struct PassDebug {
  int level = 0;            // MYCC_DEBUG
  std::string print_after;  // MYCC_PRINT_AFTER: the name of one pass
  bool time = false;        // MYCC_TIME_PASSES: seconds of each pass
};
void SetPassDebug(const PassDebug& debug);
const PassDebug& GetPassDebug();

// The passes in the order in which they run.
std::vector<std::string> PassNames();

}  // namespace mycc
