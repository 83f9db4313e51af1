#include "mycc_tune/simulation_view.h"

#include <algorithm>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/plural.h"
#include "mycc_tune/simulate_report.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr double kRedrawSeconds = 0.2;

}  // namespace

std::string SimulationProgressText(const SimulationProgress& progress) {
  const std::string device = progress.device.empty() ? "" : absl::StrCat(" on ", progress.device);
  return absl::StrFormat("%d %%  %d of %s, %s; now %s%s: %s", 100 * progress.ended / progress.searches,
                         progress.ended, HowMany(progress.searches, "search", "searches"),
                         HowMany(progress.evaluations, "evaluation"), Printable(progress.space),
                         Printable(device), NameOf(progress.strategy, progress.manner));
}

void SimulationView::Update(const SimulationProgress& progress) {
  const double now = seconds_();
  if (drawn_ && now < drawn_at_ + kRedrawSeconds) return;
  Clear();
  const std::string text = SimulationProgressText(progress);
  *out_ << ToUtf8(text.substr(0, static_cast<size_t>(std::max(0, width_ - 1)))) << std::flush;
  drawn_at_ = now;
  drawn_ = true;
}

void SimulationView::Clear() {
  if (drawn_) *out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace mycc
