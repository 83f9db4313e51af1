// The nearest name to a mistyped one.
#include "base/did_you_mean.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

TEST(DidYouMeanTest, NearestNameThatIsNear) {
  const std::vector<std::string> names = {"haswell", "znver3", "znver4"};
  EXPECT_EQ(NearestName("haswel", names), "haswell");
  EXPECT_EQ(DidYouMean("haswel", names), " (did you mean haswell?)");
  EXPECT_EQ(DidYouMean("znevr4", names), " (did you mean znver4?)");
  EXPECT_EQ(DidYouMean("abacus", names), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'h'), names), "");
  EXPECT_EQ(DidYouMean("", names), "");
}

}  // namespace
}  // namespace mycc
