// The lease queue's contents, for people. Thread rule: values.
#pragma once

#include <cstdint>
#include <string>

namespace mycc {

// The waiting trials of a job for one target.
struct QueueLine {
  std::string job, target;
  int64_t waiting = 0;
  int64_t apart = 0;  // of those: suspects, and trials that failed somewhere
};

// A trial or a final round that was leased.
struct QueueLease {
  std::string trial, job, target;
  std::string holder;  // a session, or a worker from before the server's start
  std::string device;
  std::string state;  // "granting", "held" or "committing"
  uint32_t attempt = 0;
  double expires_in_seconds = 0;  // of a held one
};

}  // namespace mycc
