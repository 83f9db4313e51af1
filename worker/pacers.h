// Pacers: candidates that a CPU's trials are timed beside. Other machines on the same host, and the clock,
// slow a kernel by up to a half for seconds at a time. A trial's samples are divided by how slow its
// workload's pacer is at that moment, so that trials of different moments can be compared. A workload's
// first sound candidate is its pacer, until another one is much faster: its time, which the first pacer
// has corrected, is then the usual one. So all of a workload's trials on one worker are on one scale.
// Thread rule: thread-compatible.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "proto/measure.pb.h"
#include "proto/worker.pb.h"
#include "worker/kept_builds.h"

namespace mycc {

class Pacers {
 public:
  static constexpr size_t kMost = 256;  // workloads; of the others the oldest are forgotten

  // `builds`, which outlives this, has the pacers' libraries. A pacer that it no longer keeps is none.
  explicit Pacers(KeptBuilds* builds) : builds_(builds) {}

  // Gives a trial its pacer, in a new file that the caller removes; none where there is none yet.
  void SetTo(const v1::Assignment& assignment, v1::RunRequest* run);
  // The candidate was sound, and took `seconds` at a usual moment.
  void Learn(const v1::Assignment& assignment, const v1::BuildRequest& build, double seconds);

 private:
  struct Pacer {
    v1::BuildRequest build;
    double seconds = 0;
  };

  KeptBuilds* const builds_;
  std::unordered_map<std::string, Pacer> pacers_;  // by protocol, target and workload
  std::deque<std::string> order_;                  // the oldest first
};

}  // namespace mycc
