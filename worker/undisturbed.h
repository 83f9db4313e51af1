// Times candidates between two runs of the baseline kernel, and repeats the timing while the baseline shows a
// disturbance. Thread rule: functions are re-entrant.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/records.pb.h"

namespace mycc {

// Whether a baseline of `seconds` was disturbed, on a device that usually takes `usual` (0: unknown, never
// disturbed).
bool IsDisturbed(double seconds, double usual);

// The least disturbed of at most `attempts` calls of `time`, which times one candidate or several, with its
// baseline. A `usual_baseline_seconds` of 0 is determined first.
absl::StatusOr<std::vector<v1::Timing>> TimeUndisturbed(
    int attempts, double usual_baseline_seconds, const std::function<absl::StatusOr<double>()>& time_baseline,
    const std::function<absl::StatusOr<std::vector<v1::Timing>>()>& time);

// A timing of one sample, for a candidate that is not worth a second one.
v1::Timing OneSample(v1::TimingProtocol protocol, double seconds);

}  // namespace mycc
