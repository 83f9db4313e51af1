// The server of the benchmark of the service (throughput.sh) as a process of its own, which is this program
// again: `mycc-tune serve` with the scripted search in place of the real one. Thread rule: for one thread.
#pragma once

#include <optional>
#include <string>

#include "tests/perf/throughput_process.h"

namespace mycc {

// The server's part: when the arguments ask for it, serves until SIGTERM and returns the exit code.
std::optional<int> RunServer(int argc, char** argv);

class ServerProcess {
 public:
  // Serves `log`; at `port`, or any free one where it is 0. Returns when the server answers.
  ServerProcess(const std::string& log, int port);
  // Ends it if it still runs, and waits until it has.
  ~ServerProcess() { Stop(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Stop();
  void Kill();  // kill -9

  const std::string& address() const { return address_; }
  int port() const { return port_; }
  // The memory that it takes now, and the processor time that it has used so far.
  double resident_mb() const;
  double cpu_seconds() const;

 private:
  PartProcess process_;
  std::string address_;
  int port_ = 0;
};

}  // namespace mycc
