#include "server/device_health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr int kLostInARow = 3;
constexpr int kRefutedInARow = 2;
constexpr int kCredit = 3;
constexpr double kDrainedTrySeconds = 30;

}  // namespace

void DeviceHealth::Drain(std::string reason, double now) {
  drain_ = std::move(reason);
  is_probed_ = false;
  retry_at_ = now + kDrainedTrySeconds;
}

void DeviceHealth::OnResult(const v1::MeasureResult& result, bool has_rival, double now) {
  ++trials_;
  lost_in_a_row_ = 0;
  const double baseline = result.timing().baseline_seconds();
  if (baseline > 0) baseline_.Add(baseline);
  if (result.status() == v1::MEASURE_STATUS_OK) {
    failures_in_a_row_ = refuted_in_a_row_ = 0;
    credit_ = kCredit;
  } else {
    ++failures_in_a_row_;
    credit_ = std::max(credit_ - 1, 0);
    last_failure_ = absl::StrCat(StatusName(result.status()), ": ", ToUtf8(result.error()));
  }
  if (baseline_.failing() && has_rival) {
    Drain(absl::StrFormat("its baseline kernel takes %.1f times as long as usual", baseline_.ratio()), now);
  } else if (!has_rival || (is_probed_ && failures_in_a_row_ == 0)) {
    Recover();
  }
}

void DeviceHealth::OnLoss(const std::string& error, double now) {
  ++trials_;
  ++lost_in_a_row_;
  if (lost_in_a_row_ >= kLostInARow)
    Drain(absl::StrCat("its last ", lost_in_a_row_, " trials were lost: ", error), now);
}

void DeviceHealth::OnConfirmed() {
  credit_ = kCredit;
  refuted_in_a_row_ = 0;
}

void DeviceHealth::OnRefuted(const std::string& evidence, double now) {
  if (++refuted_in_a_row_ >= kRefutedInARow) Drain(evidence, now);
}

void DeviceHealth::OnOutlier(const std::string& evidence, double now) {
  credit_ = 0;
  Drain(evidence, now);
}

int DeviceHealth::Allowance(int wanted, double now) {
  if (drain_.empty()) return wanted;
  if (now < retry_at_) return 0;
  retry_at_ = now + kDrainedTrySeconds;
  is_probed_ = true;
  return std::min(wanted, 1);
}

}  // namespace mycc
