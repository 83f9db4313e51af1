// This program again, as a process of its own that does a part of the benchmark of the service
// (throughput.sh). It is killed when this process ends. Thread rule: for one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mycc {

class PartProcess {
 public:
  explicit PartProcess(const std::vector<std::string>& arguments);
  // Kills it if it still runs.
  ~PartProcess();
  PartProcess(const PartProcess&) = delete;
  PartProcess& operator=(const PartProcess&) = delete;

  // The next line that it prints; empty at the end.
  std::string ReadLine();
  // Sends the signal, and waits until the process has ended. No effect when it has.
  void End(int signal);
  pid_t pid() const { return pid_; }  // 0: it has ended

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

}  // namespace mycc
