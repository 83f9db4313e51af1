// The clients of the benchmark of the service (throughput.sh): people who submit jobs and ask for records,
// and strangers that connect and say nothing. Errors end the program with their words. Thread rule:
// thread-compatible.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/tuning.grpc.pb.h"
#include "proto/tuning.pb.h"

namespace mycc {

class TuningUser {
 public:
  explicit TuningUser(const std::string& address);

  // Returns the job's id.
  std::string Submit(const v1::JobSpec& spec);
  v1::JobProgress Show(const std::string& job);
  void Cancel(const std::string& job);
  // The seconds of a look-up, and whether there was a record.
  double SecondsOfBest(const std::string& workload_hash, const std::string& target, bool* found);

 private:
  std::unique_ptr<v1::TuningService::Stub> stub_;
};

// A person's part: when the arguments ask for it, looks up records as often as they say, prints the seconds
// of each call, a line each, and returns the exit code.
std::optional<int> RunLookups(int argc, char** argv);
// The seconds of each of `calls` look-ups, by a process of its own, of the workloads of these numbers in
// turn.
std::vector<double> SecondsOfLookups(const std::string& address, int calls, const std::vector<int>& shapes);

// Connections that have said that they speak HTTP/2, as gRPC's do, and nothing since.
class SilentConnections {
 public:
  SilentConnections(int count, int port);
  ~SilentConnections();

 private:
  std::vector<int> sockets_;
};

}  // namespace mycc
