// The compiler's debug output, to the standard error. It never changes generated code. A
// program's main function sets it once, before other threads start; the library never reads the
// environment.
#pragma once

#include <chrono>
#include <string>

namespace mycc {

// The levels of MYCC_DEBUG; each includes those below it.
enum DebugLevel {
  kDebugChosen = 1,      // the schedule of each kernel, why it was chosen, and the kernel's source
  kDebugCandidates = 2,  // one line for each schedule that was considered
  kDebugSteps = 3,       // the decisions and steps of each
  kDebugCode = 4,        // the generated code
  kDebugPasses = 5,      // the IR after each pass, "(unchanged)" where it is the same
};

struct PassDebug {
  int level = 0;            // MYCC_DEBUG
  std::string print_after;  // MYCC_PRINT_AFTER: the name of one pass
  bool time = false;        // MYCC_TIME_PASSES: the time of each replay, pass and emission
};
void SetPassDebug(const PassDebug& debug);
const PassDebug& GetPassDebug();

// Times a step of compiling from construction to destruction. With MYCC_TIME_PASSES it prints:
//   replay                0.123 ms  contraction mr=6 nr=16
class TimedStep {
 public:
  // `subject` returns the text after the time; it is called only when the line is printed.
  template <typename Subject>
  TimedStep(const char* step, const Subject& subject) : step_(GetPassDebug().time ? step : nullptr) {
    if (step_ != nullptr) Begin(subject());
  }
  explicit TimedStep(const char* step) : TimedStep(step, [] { return std::string(); }) {}
  ~TimedStep();
  TimedStep(const TimedStep&) = delete;
  TimedStep& operator=(const TimedStep&) = delete;

 private:
  void Begin(std::string subject);

  const char* const step_;  // null: nothing is printed
  std::string subject_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace mycc
