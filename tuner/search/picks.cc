#include "tuner/search/picks.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace mycc {

bool Picks::Take(const Member& member) {
  if (full() || member.proposed || !steps_.insert(member.steps_key).second) return false;
  if (!HasNewCode(member.trace)) return false;
  Candidate candidate;
  candidate.point = member.point;
  candidate.trace = member.trace;
  candidate.origin = member.origin;
  if (member.prediction) {
    candidate.predicted_seconds = member.prediction->seconds;
    candidate.model = member.prediction->model;
  }
  proposals_.push_back({std::move(candidate), member.steps_key});
  return true;
}

void Picks::TakeWithPrefetch(const std::function<void(Picks*)>& take) {
  if (context_.codes != nullptr && context_.codes->HasCodes() && !rehearses_) {
    Picks rehearsal = *this;
    rehearsal.rehearses_ = true;
    take(&rehearsal);
    std::vector<const std::string*> traces;
    for (const ProposedPoint& proposal : rehearsal.proposals()) traces.push_back(&proposal.candidate.trace);
    context_.codes->Prefetch(traces);
  }
  take(this);
}

bool Picks::HasNewCode(const std::string& trace) {
  if (context_.codes == nullptr || rehearses_) return true;
  const absl::StatusOr<std::string> code = context_.codes->CodeOf(trace);
  std::string why;
  if (!code.ok()) {
    why = std::string(code.status().message());
  } else if (const std::string other = context_.codes->CandidateWith(*code); !other.empty()) {
    why = absl::StrCat("same code as trial ", other);
  } else if (!code->empty() && !codes_.insert(*code).second) {
    why = "same code as another of its generation";
  }
  if (!why.empty()) context_.refuse(why);
  return why.empty();
}

int Picks::Distance(const Point& point) const {
  int closest = std::numeric_limits<int>::max();
  for (const ProposedPoint& proposal : proposals_) {
    const Point& other = proposal.candidate.point;
    int distance = static_cast<int>(point.choice.size());
    if (other.sketch == point.sketch) {
      distance = 0;
      for (size_t d = 0; d < point.choice.size(); ++d) distance += point.choice[d] != other.choice[d];
    }
    closest = std::min(closest, distance);
  }
  return closest;
}

void TakeRandom(int count, const Sampler& sampler, const Pool::Context& context, Rng* rng, Picks* picks) {
  constexpr int kAttempts = 8;
  int taken = 0;
  for (int attempt = 0; attempt < kAttempts && taken < count && !picks->full(); ++attempt) {
    std::vector<std::pair<Point, Origin>> points;
    for (int i = taken; i < count; ++i) points.emplace_back(sampler.Random(rng), Origin::kRandom);
    Pool pool(context);
    pool.Add(points);
    const int before = picks->size();
    picks->TakeWithPrefetch([&pool](Picks* to) {
      for (const Member& member : pool.members()) to->Take(member);
    });
    taken += picks->size() - before;
  }
}

int64_t TakeByEnumeration(int64_t start, const Sampler& sampler, const Pool::Context& context, Picks* picks) {
  if (picks->full()) return start;
  const int64_t looked = sampler.Enumerate(start, kMostPlacesLooked, [&](const Point& point) {
    if (!context.dead->contains(point)) {
      Pool pool(context);
      pool.Add({{point, Origin::kGrid}});
      for (const Member& member : pool.members()) picks->Take(member);
    }
    return !picks->full();
  });
  return start + looked;
}

}  // namespace mycc
