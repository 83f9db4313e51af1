// SIGINT and SIGTERM end most commands at once. Commands that have something to finish are called on a
// thread, since a signal handler may do almost nothing. Thread rule: EndOnInterrupts and BlockInterrupts are
// called before any thread starts.
#pragma once

#include <functional>
#include <thread>

namespace mycc {

// From now on the two signals end the process with kInterruptedExitStatus and the line "mycc-tune:
// interrupted". One that was ignored before, as of a shell's background command, still is.
void EndOnInterrupts();

// From now on, in this thread and all that it starts, the two signals wait for an InterruptWatch, and no
// longer end the process. A command calls it first of all. Children are born without the block.
void BlockInterrupts();

class InterruptWatch {
 public:
  // `on_interrupt` is called on a thread of its own, with 1 for the first signal, 2 for the second, ...
  explicit InterruptWatch(std::function<void(int nth)> on_interrupt);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  int signals_, end_;
  std::thread thread_;
};

}  // namespace mycc
