// The words of --deadline.
#include "mycc_tune/deadline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

absl::TimeZone Berlin() { return absl::FixedTimeZone(3600); }
absl::Time At(int day, int hour, int minute) {
  return absl::FromCivil(absl::CivilMinute(2026, 11, day, hour, minute), Berlin());
}

absl::Time Parsed(const std::string& text) {
  const absl::StatusOr<int64_t> micros = ParseDeadline(text, At(24, 17, 30), Berlin());
  EXPECT_TRUE(micros.ok()) << micros.status();
  return micros.ok() ? absl::FromUnixMicros(*micros) : absl::InfinitePast();
}

TEST(DeadlineTest, ATimeOfDayIsTheNextOne) {
  EXPECT_EQ(Parsed("18:00"), At(24, 18, 0));
  EXPECT_EQ(Parsed("17:30"), At(25, 17, 30));
  EXPECT_EQ(Parsed("08:15"), At(25, 8, 15));
}

TEST(DeadlineTest, DatesAndDurations) {
  EXPECT_EQ(Parsed("2026-11-26T08:00"), At(26, 8, 0));
  EXPECT_EQ(Parsed("2026-11-26T08:00:00Z"), At(26, 9, 0));
  EXPECT_EQ(Parsed("2h"), At(24, 19, 30));
  EXPECT_EQ(Parsed("1h30m"), At(24, 19, 0));
}

TEST(DeadlineTest, OtherWordsAndTimesThatAreOverAreMisuse) {
  for (const char* const text : {"noon", "25:00", "", "2026-13-01T08:00", "inf"}) {
    EXPECT_THAT(std::string(ParseDeadline(text, At(24, 17, 30), Berlin()).status().message()),
                HasSubstr("is no time; expected 18:00, 2026-12-01T18:00 or 2h"))
        << text;
  }
  for (const char* const text : {"2026-11-24T17:00", "-1h"}) {
    EXPECT_THAT(std::string(ParseDeadline(text, At(24, 17, 30), Berlin()).status().message()),
                HasSubstr("is over"))
        << text;
  }
}

}  // namespace
}  // namespace mycc
