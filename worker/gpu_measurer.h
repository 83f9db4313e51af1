// Measures candidates on one GPU. Builders work on all cores while the device measures. Built candidates wait
// in a line for the device's thread, which runs one after the other.
//
//   Measure --> BuildPool --built--> line --> device thread: a runner process verifies and times it --> done
//
// Candidates that lead are held, and proven later: when the line is empty, when the rest of their batch is
// done, or when a candidate of another batch, workload or protocol, or an equal binary, comes next. They are
// proven from the fastest on; those that are slower than one that holds are not.
//
// A workload's inputs are drawn at once, and threads of the host begin to compute its outputs at some places.
// Its expected outputs are made on the device as soon as its reference is built, while its first candidates
// still are.
//
// Thread rule: Measure may be called by several threads at once, so that the next assignments are built while
// the device works on the last.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "worker/build_pool.h"
#include "worker/gpu_device.h"
#include "worker/gpu_runners.h"
#include "worker/kept_builds.h"
#include "worker/measure.h"
#include "worker/references.h"
#include "worker/result_book.h"
#include "worker/scratch.h"

namespace mycc {

struct GpuMeasurerOptions {
  double run_seconds = 10;        // for one candidate, with the making of its case where a runner is new
  double constants_seconds = 30;  // for the micro-benchmarks, which take less than one
  double prepare_seconds = 60;    // for a workload's inputs and reference
  double first_call_seconds = 2;  // a kernel that takes longer counts as hanging
  double timing_seconds = 0.05;
  double proof_seconds = 0.03;        // for launches beyond those that a proof takes
  double max_reference_flops = 4e12;  // above, expected values are sampled
  Confinement confinement;            // the worker's (worker/confined_children.h)
};

// Gets what another host has built, by the digest of its bytes.
using FetchBuild = std::function<absl::StatusOr<std::string>(const std::string& digest)>;

class GpuMeasurer {
 public:
  // `builders` must outlive the measurer. `fetch` may be null: then everything is built here. `log` takes
  // lines for people; may be null. NotFound or FailedPrecondition, in words, when kernels cannot be compiled
  // here, or candidates are to be confined and cannot be.
  static absl::StatusOr<std::unique_ptr<GpuMeasurer>> Create(const Gpu& gpu, BuildPool* builders,
                                                             GpuMeasurerOptions options,
                                                             std::function<void(const std::string&)> log,
                                                             FetchBuild fetch = nullptr);
  ~GpuMeasurer();

  void Measure(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
               const OnMeasured& done);
  // The device's constants (proto/device_constants.h), measured between two candidates; waits for the
  // device's lock until `gives_up`. One call at a time.
  absl::StatusOr<v1::DeviceConstants> MeasureConstants(const std::function<bool()>& gives_up);
  // The measures that candidates go without, and why; empty: none.
  const std::string& unconfined() const { return unconfined_; }

 private:
  using Clock = std::chrono::steady_clock;
  // The least times so far, in seconds; 0: none.
  struct Best {
    double measured = 0;  // proven or not
    double proven = 0;
  };
  // One call of Measure.
  struct Batch {
    const IsRevoked& is_revoked;
    const OnMeasured& done;
    size_t open = 0;  // guarded by mutex_
    std::set<std::pair<const Reference*, uint64_t>> cases =
        {};  // that were asked for, by seed; Measure's own
    // The best of each workload's candidates under one protocol; the device's thread's own. The leases of a
    // generation were given when its results were not known.
    std::map<std::pair<const Reference*, v1::TimingProtocol>, Best> best = {};
  };
  // An assignment's traces, as they are built.
  struct Built {
    Batch* batch;
    v1::Assignment assignment;
    std::shared_ptr<Reference> reference;
    std::vector<std::string> fetched;  // digests of what other hosts have built of them; empty: nothing
    std::vector<BuildOutcome> outcomes;
    size_t open = 0;
    std::vector<std::string> folders = {};  // of what is built here
    bool is_wanted = true;                  // by the time that they were built
    bool is_early = false;                  // of a case: its reference is still being built

    // It is there to have the case prepared, while its candidates are built.
    bool is_case() const { return outcomes.empty(); }

    bool IsUnwanted() const { return batch->is_revoked(assignment.lease()); }
  };

  // A candidate that is as fast as all that are proven, and is not proven yet.
  struct Leader {
    Built built;
    v1::MeasureResult result;
  };

  GpuMeasurer(const Gpu& gpu, const v1::Toolchain& toolchain, BuildPool* builders, GpuMeasurerOptions options,
              ScratchFolder scratch, std::function<void(const std::string&)> log, FetchBuild fetch);
  absl::Status Start(const std::string& compilers);
  absl::StatusOr<std::string> CompileMeasuringKernels() const;
  v1::BuildRequest RequestOf(const v1::Assignment& assignment) const;
  // The file with what another host has built of a candidate. An error says why it is to be built here.
  absl::StatusOr<std::string> Fetched(const v1::Assignment& assignment, const std::string& digest);
  // Empty: it is to be built here.
  std::string FetchedOrNone(const v1::Assignment& assignment, const std::string& digest);
  void StartBuilds(const v1::Assignment& assignment, Batch* batch);
  // The i-th trace was built, or was not wanted any more.
  void OnBuilt(const std::shared_ptr<Built>& built, size_t i, std::optional<BuildOutcome> outcome);
  void OpenIn(Batch* batch);
  // Puts the case in front of the line: at once, for what the host computes, and when its reference is built.
  void BeginCase(const Built& of_case);

  // On the device's thread.
  void RunDevice();
  absl::StatusOr<v1::DeviceConstants> CallForConstants(const std::function<bool()>& gives_up);
  void Take(Built built);
  // Measures one candidate, which is a leader where it owes a proof.
  void MeasureCandidate(Built built);
  // Whether a leader is an equal binary: its result is the other's.
  bool HoldsEqualBinary(const Built& built) const;
  // Whether the leaders are to be proven before the next in line is taken.
  bool IsProofDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Proves the leaders that owe it, and finishes all of them.
  void SettleLeaders();
  // Hands the results over, unless the device gave up on them, and drops what was built.
  void Finish(const Built& built, std::vector<v1::MeasureResult> results);
  // Removes what was built; the batch no longer waits for it.
  void Close(const Built& built);
  void Prepare(const Built& built);
  void KeepOrForget(const Built& built, const std::vector<v1::MeasureResult>& results);
  // The key of Batch::best.
  static std::pair<const Reference*, v1::TimingProtocol> BestKeyOf(const Built& built);
  // Valid as long as `built`.
  Lane LaneOf(const Built& built);
  std::optional<v1::RunnerResponse> Run(const Built& built, const std::vector<std::string>& libraries,
                                        v1::MeasureResult* failure);
  // Sends the request to a runner, and keeps its description of the device.
  std::optional<v1::RunnerResponse> Call(const v1::RunnerRequest& request, double seconds,
                                         v1::MeasureResult* failure);
  std::optional<v1::RunnerResponse> Prove(const Built& built, const std::string& library, double seconds,
                                          v1::MeasureResult* failure);
  // The trial is no longer wanted while it waits for the device's lock: it has no result.
  std::optional<v1::RunnerResponse> GiveUp(v1::MeasureResult* failure);
  absl::StatusOr<v1::GpuCase> PreparedCase(const Built& built);
  absl::StatusOr<v1::GpuCase> PrepareCase(const Built& built);
  static v1::RunnerRequest PrepareRequestOf(const v1::Assignment& assignment);
  void NoteIdle(bool last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Gpu gpu_;
  BuildPool* const builders_;
  const GpuMeasurerOptions options_;
  const ScratchFolder scratch_;
  const Confinement runner_confinement_;
  std::string unconfined_;
  const std::function<void(const std::string&)> log_;
  const FetchBuild fetch_;
  std::atomic<int64_t> fetched_ = 0, builds_ = 0;

  KeptBuilds kept_;
  References references_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Built> line_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> errand_ ABSL_GUARDED_BY(mutex_);  // for the device's thread, before what is in line
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;               // assignments and cases of all batches
  Clock::time_point work_began_ ABSL_GUARDED_BY(mutex_);  // when the first of them came
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // These are the device's thread's alone.
  std::unique_ptr<GpuRunners> runners_;
  ResultBook book_;
  BaselineMedian baselines_;
  std::vector<Leader> leaders_;  // of one batch, workload and protocol
  bool gave_up_ = false;         // on the trial in hand
  v1::DeviceInfo device_;        // as the last run left it
  struct Share {                 // of the time in which there was something to do
    double busy_seconds = 0, wall_seconds = 0;
    int candidates = 0;
    bool is_working = false;  // since work_began_
    Clock::time_point said = Clock::now();
  } share_;

  std::thread thread_;
};

}  // namespace mycc
