// Times several candidates in turn, A B C C B A, so that drift of the device or a passing neighbour affects
// all of them alike, and their times can be compared. Pure but for the clock and the calls that are passed
// in. Thread rule: functions are re-entrant.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/records.pb.h"
#include "worker/timer.h"

namespace mycc {

// One sample of each candidate: the mean of one on the way there and one on the way back, so that drift
// within the turn affects all of them alike.
using Turn = std::vector<double>;
// The candidate of the i-th of the 2 * size samples of a turn.
int CandidateAt(int i, int size);

// A timing for each candidate. The geometric mean of a turn's samples measures the turn's moment. A
// candidate's `seconds` is the median of its samples relative to those means, at the median moment. So common
// disturbances do not change the order. REQUIRES: turns are not empty, and of one size.
std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol, const std::vector<Turn>& turns);

// Takes turns until the candidates' relative times are precise enough, or plan.budget_seconds, for all
// together, are spent; a few are always taken. `batch` takes one or several turns.
absl::StatusOr<std::vector<v1::Timing>> TimeTurns(
    const TimingPlan& plan, const std::function<absl::StatusOr<std::vector<Turn>>()>& batch,
    const std::function<double()>& now);

// The same for calls, with samples as in TimeCalls. Warm: an untimed call precedes a sample of short calls,
// since the other candidates have used the caches meanwhile.
std::vector<v1::Timing> TimeCallsInTurn(const TimingPlan& plan, const std::vector<TimedCall>& calls,
                                        const std::function<double()>& now);

}  // namespace mycc
