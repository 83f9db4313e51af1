// Measures candidates on this host's CPU. It builds a batch on all cores, then runs the candidates one by
// one, alone: building and running share the cores. Thread rule: Measure and
// MeasureConstants are called by one thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/fork_server.h"
#include "worker/build_pool.h"
#include "worker/kept_builds.h"
#include "worker/measure.h"
#include "worker/pacers.h"
#include "worker/result_book.h"
#include "worker/scratch.h"

namespace mycc {

struct CpuMeasurerOptions {
  int builders = 1;
  Confinement confinement;  // the worker's (worker/confined_children.h)
  BuildLimits build;
  double run_seconds = 10;       // for one run of a candidate, from the start of its process
  double prepare_seconds = 120;  // for a workload's inputs and reference
  double timing_seconds = 0.1;
  double cold_timing_seconds = 0.3;
  double constants_seconds = 30;      // for the micro-benchmarks, which take about one
  double proof_seconds = 0.05;        // for launches beyond those that a proof takes
  double max_reference_flops = 3e10;  // above, expected values are sampled
  int64_t run_address_space_bytes = int64_t{32} << 30;
  int64_t max_case_bytes = int64_t{2} << 30;
  int64_t max_cache_bytes = int64_t{256} << 20;  // of reference kernels, which outlive the worker
};

class CpuMeasurer {
 public:
  // FailedPrecondition where candidates are to be confined, and cannot be.
  static absl::StatusOr<std::unique_ptr<CpuMeasurer>> Create(CpuMeasurerOptions options);

  void Measure(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
               const OnMeasured& done);
  // The device's constants (proto/device_constants.h), for a target with that number of threads; waits for
  // the host's lock until `gives_up`.
  absl::StatusOr<v1::DeviceConstants> MeasureConstants(int threads, const std::function<bool()>& gives_up);
  // The measures that candidates go without, and why; empty: none.
  const std::string& unconfined() const { return unconfined_; }

 private:
  CpuMeasurer(CpuMeasurerOptions options, ScratchFolder scratch, std::string reference_folder);

  v1::BuildRequest BuildOf(const v1::Assignment& assignment, const std::string& trace) const;
  // Builds what is not kept; outcomes in the order of the requests.
  std::vector<BuildOutcome> Build(const std::vector<v1::BuildRequest>& requests,
                                  const std::function<bool()>& is_wanted);
  std::vector<v1::MeasureResult> MeasureBuilt(const v1::Assignment& assignment,
                                              const std::vector<BuildOutcome>& builds);
  std::optional<v1::RunnerResponse> Run(const v1::Assignment& assignment,
                                        const std::vector<std::string>& libraries,
                                        v1::MeasureResult* failure);
  std::optional<v1::RunnerResponse> Prove(const v1::Assignment& assignment, const std::string& library,
                                          double seconds, v1::MeasureResult* failure);
  // The folder of the workload's test case for the seed, made where there is none yet.
  absl::StatusOr<std::string> PreparedCase(const v1::Assignment& assignment);
  absl::Status PrepareCase(const v1::Assignment& assignment, const std::string& folder);
  // The trial is no longer wanted while it waits for the host's lock: it has no result.
  absl::Status GiveUp();
  void ForgetOldCases();
  // The process that starts runners, for this number of threads.
  void MakeRunner(int threads);
  // Fails with `ending` set when the process ended without an answer.
  absl::StatusOr<v1::RunnerResponse> CallRunner(const v1::RunnerRequest& request, int threads,
                                                double wall_seconds, Ending* ending);

  const CpuMeasurerOptions options_;
  const ScratchFolder scratch_;
  const std::string reference_folder_;
  const Confinement runner_confinement_;
  std::string unconfined_;
  const v1::DeviceInfo device_;
  const int64_t flush_bytes_;
  BuildPool builders_;
  KeptBuilds kept_;
  Pacers pacers_;
  std::unique_ptr<ForkServer> runner_;
  int runner_threads_ = 0;
  ResultBook book_;
  BaselineMedian baselines_;
  std::map<std::string, absl::Status> cases_;  // by folder
  std::deque<std::string> case_order_;         // the oldest first
  std::function<bool()> gives_up_;             // whether the trial in hand is not wanted any more
  bool gave_up_ = false;                       // on the trial in hand
};

}  // namespace mycc
