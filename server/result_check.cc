#include "server/result_check.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/timer_version.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// The longest call: workers give one up after some seconds. Larger numbers would leave no cost model finite.
constexpr double kMostSeconds = 86400;

absl::Status Impossible(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status CheckSource(const v1::DeviceInfo& said, const Expectation& expected) {
  if (!said.worker().empty() && said.worker() != expected.worker)
    return Impossible(absl::StrCat("it is said to be of worker ", ToUtf8(said.worker())));
  if (expected.offer.device().empty())
    return Impossible(absl::StrCat("the worker has registered no device \"", ToUtf8(said.device()), "\""));
  if (!said.device().empty() && said.device() != expected.offer.device()) {
    return Impossible(absl::StrCat("it is said to be of device ", ToUtf8(said.device()),
                                   "; the trial was leased to device ", expected.offer.device()));
  }
  return absl::OkStatus();
}

absl::Status CheckTime(double seconds, const Expectation& expected) {
  if (std::isfinite(seconds) && seconds > kMostSeconds)
    return Impossible(absl::StrCat("it took ", seconds, " s; expected at most ", kMostSeconds, " s"));
  if (std::isfinite(seconds) && seconds >= expected.least_seconds) return absl::OkStatus();
  return Impossible(absl::StrCat("it took ", seconds, " s; no device of the target takes less than ",
                                 expected.least_seconds, " s"));
}

absl::Status CheckTiming(const v1::Timing& timing, const Expectation& expected) {
  if (timing.protocol() != expected.protocol) {
    return Impossible(absl::StrCat("it was timed with ", ProtocolName(timing.protocol()),
                                   " caches; expected ", ProtocolName(expected.protocol)));
  }
  const uint32_t registered = expected.offer.timer_version();
  const bool is_known =
      registered != 0 ? timing.timer_version() == registered : timing.timer_version() <= kTimerVersion;
  if (!is_known) {
    return Impossible(absl::StrCat("it was timed by version ", timing.timer_version(),
                                   " of the rules; expected ", registered != 0 ? registered : kTimerVersion));
  }
  MYCC_RETURN_IF_ERROR(CheckTime(timing.seconds(), expected));
  for (const double bound : {timing.ci_low_seconds(), timing.ci_high_seconds()}) {
    if (!std::isfinite(bound) || bound < 0 || bound > kMostSeconds)
      return Impossible(absl::StrCat("a bound of its interval is ", bound, " s"));
  }
  for (const double sample : timing.samples_seconds()) MYCC_RETURN_IF_ERROR(CheckTime(sample, expected));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckResult(const v1::MeasureResult& result, const Expectation& expected) {
  if (result.status() == v1::MEASURE_STATUS_UNSPECIFIED || !v1::MeasureStatus_IsValid(result.status()))
    return Impossible(absl::StrCat("its status is ", static_cast<int>(result.status())));
  const double baseline = result.timing().baseline_seconds();
  if (!std::isfinite(baseline) || baseline < 0)
    return Impossible(absl::StrCat("its baseline kernel took ", baseline, " s"));
  MYCC_RETURN_IF_ERROR(CheckSource(result.device(), expected));
  if (result.status() != v1::MEASURE_STATUS_OK) return absl::OkStatus();
  return CheckTiming(result.timing(), expected);
}

}  // namespace mycc
