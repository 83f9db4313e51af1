#include "worker/pacers.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {
namespace {

// A slower pacer takes longer than what it serves, and feels other things.
constexpr double kMuchFaster = 0.7;

std::string PacedAs(const v1::Assignment& assignment) {
  return Sha256Hex(
      absl::StrCat(assignment.protocol(), "\n", assignment.target(), "\n", assignment.workload()));
}

}  // namespace

void Pacers::SetTo(const v1::Assignment& assignment, v1::RunRequest* run) {
  const auto pacer = pacers_.find(PacedAs(assignment));
  if (pacer == pacers_.end()) return;
  const std::optional<BuildOutcome> kept = builds_->Find(pacer->second.build, "", "pacer");
  if (!kept) return;
  run->set_pacer(kept->built.library());
  run->set_pacer_seconds(pacer->second.seconds);
}

void Pacers::Learn(const v1::Assignment& assignment, const v1::BuildRequest& build, double seconds) {
  if (!(seconds > 0)) return;
  const auto [pacer, is_new] = pacers_.try_emplace(PacedAs(assignment));
  if (is_new) order_.push_back(pacer->first);
  if (!is_new && seconds > kMuchFaster * pacer->second.seconds && builds_->Has(pacer->second.build)) return;
  pacer->second = {build, seconds};
  if (order_.size() <= kMost) return;
  pacers_.erase(order_.front());
  order_.pop_front();
}

}  // namespace mycc
