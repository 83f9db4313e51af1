#include "tuner/search/pool.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mycc {
namespace {

// A candidate that fails costs its trial and yields nothing. One that the models disagree about may be better
// than they say together, and teaches more: it counts as faster by a part of their doubt, but not by more
// than a tenth.
double ExpectedSeconds(const Prediction& prediction, double success) {
  constexpr double kWorstOdds = 0.02, kOptimism = 0.5, kMostOptimism = 0.1;
  const double hope = std::exp(-std::min(kMostOptimism, kOptimism * prediction.log_spread));
  return prediction.seconds * hope / std::max(kWorstOdds, success);
}

}  // namespace

bool Pool::Admit(const Point& point, Origin origin, std::vector<Member>* members,
                 std::vector<Trace>* traces) {
  if (!seen_points_.insert(point).second || context_.dead->contains(point)) return false;
  absl::StatusOr<Trace> trace = context_.sketches[point.sketch].instantiate(point.choice);
  if (!trace.ok()) {
    context_.refuse(std::string(trace.status().message()));
    context_.dead->insert(point);
    return false;
  }
  Member member{point, origin, PrintTrace(*trace), StepsKey(*trace), std::nullopt, 0, false};
  if (context_.ledger.Proposed(member.steps_key)) {
    context_.refuse("an earlier candidate has the same steps");
    context_.dead->insert(point);
    return false;
  }
  if (!seen_steps_.insert(member.steps_key).second) return false;
  members->push_back(std::move(member));
  traces->push_back(*std::move(trace));
  return true;
}

void Pool::Add(const std::vector<std::pair<Point, Origin>>& points) {
  std::vector<Member> fresh;
  std::vector<Trace> traces;
  for (const auto& [point, origin] : points) Admit(point, origin, &fresh, &traces);
  if (context_.scorer != nullptr) Predict(traces, &fresh);
  for (Member& member : fresh) {
    const bool ranked = member.prediction && context_.believe;
    member.expected_seconds = ranked ? ExpectedSeconds(*member.prediction, SuccessOf(member))
                                     : context_.unranked_order(member.point);
    members_.push_back(std::move(member));
  }
  Sort();
}

double Pool::SuccessOf(const Member& member) const {
  const double seen = context_.failures == nullptr ? 1 : context_.failures->Success(member.point);
  return std::min(seen, 1 - member.prediction->failure_probability);
}

void Pool::Predict(const std::vector<Trace>& traces, std::vector<Member>* members) {
  std::vector<const Trace*> asked;
  for (const Trace& trace : traces) asked.push_back(&trace);
  const std::vector<absl::StatusOr<Prediction>> predictions = context_.scorer->Score(asked);
  MYCC_CHECK(predictions.size() == members->size())
      << predictions.size() << " predictions for " << members->size() << " traces";
  std::vector<Member> predicted;
  for (size_t i = 0; i < members->size(); ++i) {
    Member& member = (*members)[i];
    if (!predictions[i].ok()) {
      context_.refuse(std::string(predictions[i].status().message()));
      context_.dead->insert(member.point);
      continue;
    }
    MYCC_CHECK(std::isfinite(predictions[i]->seconds) && predictions[i]->seconds > 0)
        << "predicted " << predictions[i]->seconds << " s";
    member.prediction = *predictions[i];
    if (!analytic_best_ || predictions[i]->analytic_seconds < analytic_best_->prediction->analytic_seconds)
      analytic_best_ = member;
    predicted.push_back(std::move(member));
  }
  *members = std::move(predicted);
}

void Pool::AddMeasured(const Candidate& candidate, double expected_seconds) {
  if (!seen_points_.insert(candidate.point).second) return;
  members_.push_back(
      {candidate.point, candidate.origin, candidate.trace, "", std::nullopt, expected_seconds, true});
  Sort();
}

void Pool::KeepFastest(int count) {
  if (static_cast<int>(members_.size()) > count) members_.erase(members_.begin() + count, members_.end());
}

void Pool::Sort() {
  std::ranges::stable_sort(
      members_, [](const Member& a, const Member& b) { return a.expected_seconds < b.expected_seconds; });
}

}  // namespace mycc
