#include "mycc_tune/deadline.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "command/misuse.h"

namespace mycc {
namespace {

// The next moment at which a clock of the zone shows this time of day.
std::optional<absl::Time> NextTimeOfDay(const std::string& text, absl::Time now, absl::TimeZone zone) {
  absl::Time of_day;
  std::string error;
  if (!absl::ParseTime("%H:%M", text, absl::UTCTimeZone(), &of_day, &error)) return std::nullopt;
  const absl::CivilSecond time = absl::ToCivilSecond(of_day, absl::UTCTimeZone());
  absl::CivilDay day = absl::ToCivilDay(now, zone);
  const auto on = [&](absl::CivilDay date) {
    return absl::FromCivil(
        absl::CivilSecond(date.year(), date.month(), date.day(), time.hour(), time.minute(), 0), zone);
  };
  return on(day) > now ? on(day) : on(++day);
}

std::optional<absl::Time> DateAndTime(const std::string& text, absl::TimeZone zone) {
  absl::Time time;
  std::string error;
  for (const char* const format : {"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", absl::RFC3339_sec}) {
    if (absl::ParseTime(format, text, zone, &time, &error)) return time;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<int64_t> ParseDeadline(const std::string& text, absl::Time now, absl::TimeZone zone) {
  std::optional<absl::Time> time = NextTimeOfDay(text, now, zone);
  if (!time) time = DateAndTime(text, zone);
  absl::Duration duration;
  if (!time && absl::ParseDuration(text, &duration) && duration < absl::InfiniteDuration())
    time = now + duration;
  if (!time) {
    return Misuse(
        absl::StrCat("--deadline: \"", text, "\" is no time; expected 18:00, 2026-12-01T18:00 or 2h"));
  }
  if (*time <= now)
    return Misuse(absl::StrCat("--deadline: \"", text, "\" is over; expected a time to come"));
  return absl::ToUnixMicros(*time);
}

}  // namespace mycc
