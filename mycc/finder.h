// Finds the schedule of a workload: a record of the tuning log, a near record's decisions, or the default
// schedule. Says why.
//
//   hit    the log's best record for the same workload and target, from which this build makes the same code;
//          a record that no longer replays leaves its place to the next best
//   stale  the same, but this build makes other code from it
//   near   the decisions of another target's or another shape's record, re-fitted here; never one that is
//          expected to be slower than the default
//   predicted
//          given a model: the schedule that it expects to be fastest, among the decisions of near records,
//          the defaults, and what a search finds from there; it takes the place of the two around it
//   miss   the default schedule
//
// Thread rule: thread-compatible; the log is only read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "db/tuning_log.h"
#include "mycc/near_record.h"
#include "mycc/predicted_schedules.h"
#include "mycc/unmeasured_schedules.h"
#include "proto/timing_protocol.h"

namespace mycc {

struct Found {
  KernelSpec kernel;
  std::string why;  // what matched, what differs, what was checked
};
// "conv: hit, record 12 (same workload, target and code)", "conv: miss, default of rule `contraction` (...)".
std::string Headline(const Found& found);

// A reason's name in its colour on the standard output.
std::string PaintedReason(const std::string& reason);

class ScheduleFinder {
 public:
  // `log` may be null: everything misses. `model` may be null: nothing is predicted. Both outlive the finder.
  ScheduleFinder(const TuningLog* log, Target target, KernelUse use = KernelUse::kAlone,
                 PredictedSchedules* model = nullptr)
      : log_(log),
        model_(model),
        protocols_(ProtocolsOf(target, v1::TIMING_PROTOCOL_UNSPECIFIED, use)),
        target_(std::move(target)) {}

  // Errors are those of a damaged log, and of a workload whose default schedule cannot be compiled.
  absl::StatusOr<Found> Find(const Workload& workload) const;
  // The time of the record that Find would take, were there records of this protocol alone; nullopt where the
  // workload has none that replays. Errors are those of a damaged log.
  absl::StatusOr<std::optional<double>> MeasuredSeconds(const Workload& workload,
                                                        v1::TimingProtocol protocol) const;
  // In the order of preference.
  const std::vector<v1::TimingProtocol>& protocols() const { return protocols_; }

 private:
  // The workload that is looked up, and why what was tried so far did not serve.
  struct Query {
    const Workload& workload;
    Workload canonical;
    std::string hash;
    std::string why_not;
    std::optional<UnmeasuredSchedules> unmeasured;  // made when first needed
  };
  const UnmeasuredSchedules& UnmeasuredOf(Query* query) const;

  // The best of the workload's own records that replays.
  absl::StatusOr<std::optional<Found>> FindOwn(Query* query,
                                               const std::vector<v1::TimingProtocol>& protocols) const;
  // The error is why it does not replay.
  absl::StatusOr<Found> Use(const Query& query, const StoredRecord& best) const;
  absl::StatusOr<std::optional<Found>> FindNear(Query* query) const;
  // The error is what speaks against the near record.
  absl::StatusOr<Found> Adapt(Query* query, const NearRecord& near_record) const;
  // Without a record of the workload's own.
  absl::StatusOr<Found> FindUnmeasured(Query* query) const;
  absl::StatusOr<std::optional<Found>> FindPredicted(Query* query) const;
  absl::StatusOr<Found> Default(Query* query) const;

  const TuningLog* const log_;
  PredictedSchedules* const model_;
  const std::vector<v1::TimingProtocol> protocols_;  // the first that has a record decides
  const Target target_;
};

}  // namespace mycc
