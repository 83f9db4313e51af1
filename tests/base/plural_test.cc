// Counts with their nouns.
#include "base/plural.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

TEST(PluralTest, OneHasNoPlural) {
  EXPECT_EQ(HowMany(0, "trial"), "0 trials");
  EXPECT_EQ(HowMany(1, "trial"), "1 trial");
  EXPECT_EQ(HowMany(11, "trial"), "11 trials");
  EXPECT_EQ(HowMany(uint64_t{1} << 40, "candidate"), "1099511627776 candidates");
  EXPECT_EQ(HowMany(size_t{1}, "open trial"), "1 open trial");
  EXPECT_EQ(HowMany("0.5", "trial"), "0.5 trials");
  EXPECT_EQ(HowMany(1, "launch", "launches"), "1 launch");
  EXPECT_EQ(HowMany(2, "launch", "launches"), "2 launches");
}

}  // namespace
}  // namespace mycc
