#include "mycc_tune/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/check.h"
#include "command/misuse.h"

namespace mycc {
namespace {

// A forked child, which has the handler too, says nothing.
pid_t process_that_says_it = 0;

// Only async-signal-safe calls.
void EndInterrupted(int) {
  static constexpr char kLine[] = "mycc-tune: interrupted\n";
  if (getpid() == process_that_says_it && write(STDERR_FILENO, kLine, sizeof(kLine) - 1) < 0) {
    // Nobody reads it; the exit status says the same.
  }
  _exit(kInterruptedExitStatus);
}

void SetUnlessIgnored(int signal, void (*handler)(int)) {
  struct sigaction before = {}, now = {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  now.sa_handler = handler;
  sigemptyset(&now.sa_mask);
  sigaction(signal, &now, nullptr);
}

sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void EndOnInterrupts() {
  process_that_says_it = getpid();
  for (const int signal : {SIGINT, SIGTERM}) SetUnlessIgnored(signal, EndInterrupted);
}

void BlockInterrupts() {
  const sigset_t set = Interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (const int signal : {SIGINT, SIGTERM}) SetUnlessIgnored(signal, SIG_DFL);
}

InterruptWatch::InterruptWatch(std::function<void(int nth)> on_interrupt) {
  const sigset_t set = Interrupts();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  MYCC_CHECK(signals_ >= 0 && end_ >= 0) << "no descriptors for signals";
  thread_ = std::thread([this, on_interrupt = std::move(on_interrupt)] {
    for (int nth = 1;; ++nth) {
      pollfd ready[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
      while (poll(ready, 2, -1) < 0) {
      }
      if (ready[1].revents != 0) return;
      signalfd_siginfo info;
      if (read(signals_, &info, sizeof(info)) == sizeof(info)) on_interrupt(nth);
    }
  });
}

InterruptWatch::~InterruptWatch() {
  const uint64_t one = 1;
  MYCC_CHECK(write(end_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  close(signals_);
  close(end_);
}

}  // namespace mycc
