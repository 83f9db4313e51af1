// The clients of the benchmark of the service (throughput.sh): people who submit jobs and ask for records,
// and strangers that connect and say nothing. Errors end the program with their words. Thread rule:
// thread-compatible.
#pragma once

#include <memory>
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

// Connections that have said that they speak HTTP/2, as gRPC's do, and nothing since.
class SilentConnections {
 public:
  SilentConnections(int count, int port);
  ~SilentConnections();

 private:
  std::vector<int> sockets_;
};

}  // namespace mycc
