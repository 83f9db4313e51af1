// Fills in results for the measurers of all kinds of devices, and remembers earlier results and the device's
// usual baseline time. Thread rule: thread-compatible.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "proto/worker.pb.h"
#include "worker/build_pool.h"
#include "worker/outcome.h"

namespace mycc {

// The traces of an assignment: its candidate's, and its rivals'.
std::vector<std::string> TracesOf(const v1::Assignment& assignment);

// Gets libraries verified and timed, several of them in turn. Nullopt when that failed as a whole; `failure`
// then has the reason.
using RunLibraries = std::function<std::optional<v1::RunnerResponse>(
    const std::vector<std::string>& libraries, v1::MeasureResult* failure)>;

// Gets a verified and timed library proven by launches under strain, `seconds` each. Nullopt as above.
using ProveLibrary = std::function<std::optional<v1::RunnerResponse>(
    const std::string& library, double seconds, v1::MeasureResult* failure)>;

struct Lane {
  RunLibraries run;
  ProveLibrary prove;
};

class ResultBook {
 public:
  explicit ResultBook(v1::Toolchain toolchain) : toolchain_(std::move(toolchain)) {}

  // The results of an assignment whose traces were built. The device is left to the caller. One candidate's
  // result is known from an equal binary (which is not timed twice), or is that of its failed build, or of
  // its run. The candidates of a final round are all timed, each for itself; a round that failed as a whole,
  // which is no candidate's alone, has one result that says so. Possible winners are proven: a
  // candidate that is as fast as the best of its workload, and those that tie with the fastest of a final
  // round (TiesWith). A binary is proven once for a workload: what this device has seen of it counts in later
  // rounds.
  std::vector<v1::MeasureResult> Make(const v1::Assignment& assignment,
                                      const std::vector<BuildOutcome>& builds, const Lane& lane);

  // Make for one candidate, in two steps, between which others may be measured.
  v1::MeasureResult Measure(const v1::Assignment& assignment, const BuildOutcome& build, const Lane& lane);
  // Whether it is a possible winner that is not proven: as fast as the best so far (0: none).
  static bool OwesProof(double best_seconds, const v1::MeasureResult& result);
  // Proves a candidate that was measured, or makes its result a failure.
  void Prove(const v1::Assignment& assignment, const BuildOutcome& build, const Lane& lane,
             v1::MeasureResult* result);

 private:
  std::vector<v1::MeasureResult> MakeRound(const v1::Assignment& assignment,
                                           const std::vector<BuildOutcome>& builds, const Lane& lane);
  // Proves those that tie with the fastest of a round. Where one fails, those that tie with the fastest of
  // the rest are proven too.
  void ProveTies(const v1::Assignment& assignment, const std::vector<BuildOutcome>& builds, const Lane& lane,
                 std::vector<v1::MeasureResult>* results);
  // Takes over the proof of an equal binary; false where there is none.
  bool TakeKnownProof(const v1::Assignment& assignment, const BuildOutcome& build, v1::MeasureResult* result);
  void ProveNow(const v1::Assignment& assignment, const BuildOutcome& build, const Lane& lane,
                v1::MeasureResult* result);
  // For equal binaries, unless the failure is no candidate's.
  void Remember(const v1::Assignment& assignment, const BuildOutcome& build, const v1::MeasureResult& result);
  // Fills in the parts that every result has.
  void Describe(const v1::Assignment& assignment, const BuildOutcome& build, v1::MeasureResult* result) const;

  const v1::Toolchain toolchain_;
  std::unordered_map<std::string, v1::MeasureResult> by_digest_;
  std::unordered_map<std::string, v1::Verification> proofs_;  // by digest and workload; those that held
};

// The latest times of a device's baseline kernel.
class BaselineMedian {
 public:
  void Add(double seconds);  // 0: there was none
  // The lower quartile: the device's time when nothing disturbs it, after it has warmed up. 0 while
  // unknown.
  double Usual() const;

 private:
  std::deque<double> latest_;
};

// Sets a failure's status and text, which may hold any bytes.
void Fail(v1::MeasureStatus status, const std::string& error, v1::MeasureResult* result);

// How the making of a reference ended: as a code, and as the failure of the candidates that then cannot be
// verified. IsPassingFailure: what was lost or lacking, the process, the device or space, may be there next
// time.
absl::Status ErrorOf(const Ending& ending);
bool IsPassingFailure(const absl::Status& reference);
void FailWithout(const absl::Status& reference, v1::MeasureResult* result);

// Copies the runner's findings about a candidate.
void TakeResponse(const v1::RunnerResponse& response, v1::MeasureResult* result);

}  // namespace mycc
