// When errors are coloured.
#include "command/colour.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mycc {
namespace {

TEST(ColourTest, NoneUntilItIsChosen) { EXPECT_EQ(Painted("a", Tone::kError, Stream::kOutput), "a"); }

TEST(ColourTest, AlwaysAndNever) {
  ChooseColour("always");
  EXPECT_EQ(Painted("a", Tone::kError, Stream::kOutput), "\x1b[1;31ma\x1b[0m");
  EXPECT_EQ(Painted("a", Tone::kHit, Stream::kError), "\x1b[32ma\x1b[0m");
  EXPECT_EQ(Painted("", Tone::kHit, Stream::kError), "");
  ChooseColour("never");
  EXPECT_EQ(Painted("a", Tone::kError, Stream::kOutput), "a");
}

}  // namespace
}  // namespace mycc
