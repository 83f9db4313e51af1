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

// A timing for each candidate. A turn's moment is as slow as the candidates' samples in it are, relative to
// their own medians: the median of these. A candidate's `seconds` is the median of its samples over their
// moments. So common disturbances do not change the order, and one candidate's own do not disturb the others.
// REQUIRES: turns are not empty, and of one size.
std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol, const std::vector<Turn>& turns);

// The same for turns at each of several placements in memory (codegen/runtime/placement.h), on which a
// kernel's time depends. `seconds` is the mean over the placements, and the interval holds what other
// placements would add. Fewer than kFewestPlacements say nothing of others: then it is of the turns.
// REQUIRES: no placement is without turns, and all turns are of one size.
constexpr size_t kFewestPlacements = 4;
std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol,
                                  const std::vector<std::vector<Turn>>& placements);

// Takes turns until the candidates' relative times are precise enough, or plan.budget_seconds, for all
// together, are spent; a few are always taken. `batch` takes one or several turns.
absl::StatusOr<std::vector<v1::Timing>> TimeTurns(
    const TimingPlan& plan, const std::function<absl::StatusOr<std::vector<Turn>>()>& batch,
    const std::function<double()>& now);

// The same for calls, with samples as in TimeCalls. Warm: an untimed call precedes a sample of short calls,
// since the other candidates have used the caches meanwhile.
std::vector<v1::Timing> TimeCallsInTurn(const TimingPlan& plan, const std::vector<TimedCall>& calls,
                                        const std::function<double()>& now);

// The same at kPlacements placements, each with its part of the time. `place` makes the calls of one, counted
// from 0; of those of earlier ones none is made any more. The order of the candidates is reversed from one to
// the next. Where these take long, kFewestPlacements are enough, and fewer where one more would
// end after twice the budget. It fails
// as `place` does.
constexpr int kPlacements = 16;
absl::StatusOr<std::vector<v1::Timing>> TimeCallsAtPlacements(
    const TimingPlan& plan, const std::function<absl::StatusOr<std::vector<TimedCall>>(int)>& place,
    const std::function<double()>& now);

}  // namespace mycc
