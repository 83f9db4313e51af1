// Other devices' results as history and samples, matched by the names of parameters and values.
#include "laboratory/warm_start.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/laboratory/made_space.h"
#include "tuner/space/refit.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

SpaceReplay RecordedReplay(const RecordedSpace& space) {
  auto replay = SpaceReplay::Make(space);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

TEST(WarmStartTest, BeginsWithWhatIsGoodOnAllOtherDevices) {
  const SpaceReplay replay = RecordedReplay(MadeSpace());
  const RecordedSpace a = MadeSpace("a", 3, 3), b = MadeSpace("b", 0.2, 5);
  const auto warm = WarmStartFrom(replay, {&a, &b});
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->prior.size(), a.configurations.size() + b.configurations.size());
  EXPECT_EQ(warm->history.size(), 16u);
  // The devices like blocks 3 and 5; between them both lose least.
  const auto best = PointOf(warm->history[0], {replay.sketch()});
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->choice, (Choice{4, 3, 1, 1}));
  const auto failed = std::ranges::count_if(warm->prior, [](const PriorResult& r) { return !r.seconds; });
  EXPECT_EQ(failed, 2 * 12);
}

// Other files may name the parameters and values in another order, and know other values.
TEST(WarmStartTest, ParametersAndValuesAreMatchedByName) {
  const SpaceReplay replay = RecordedReplay(MadeSpace());
  RecordedSpace other;
  other.name = "made";
  other.device = "c";
  other.parameters = {{"cached", {"true", "false"}, false},
                      {"layout", {"column", "row"}, false},
                      {"tile", {"8", "2"}},
                      {"block", {"4", "256"}}};
  other.configurations = {{{0, 0, 1, 0}, {2.0}}, {{0, 0, 1, 1}, {1.0}}, {{1, 1, 0, 0}, {}, 1, "compile"}};
  const auto warm = WarmStartFrom(replay, {&other});
  ASSERT_TRUE(warm.ok()) << warm.status();
  ASSERT_EQ(warm->prior.size(), 2u);  // a block of 256 is unknown here
  EXPECT_EQ(warm->prior[0].choice, (Choice{2, 1, 1, 1}));
  EXPECT_EQ(warm->prior[1].choice, (Choice{2, 5, 0, 0}));
  EXPECT_FALSE(warm->prior[1].seconds.has_value());
  ASSERT_EQ(warm->history.size(), 1u);  // one that failed everywhere is no good beginning
}

TEST(WarmStartTest, RefusesAnotherSpace) {
  const SpaceReplay replay = RecordedReplay(MadeSpace());
  RecordedSpace other = MadeSpace("a");
  other.name = "else";
  other.parameters[1].name = "depth";
  EXPECT_THAT(
      std::string(WarmStartFrom(replay, {&other}).status().message()),
      HasSubstr("space \"else\" of a: its parameters are block, depth, layout, cached; expected those of "
                "\"made\" of gpu: block, tile, layout, cached"));
  other = MadeSpace("a");
  other.parameters[0].values = {"3", "5", "7", "9", "11", "13", "15", "17"};
  EXPECT_THAT(std::string(WarmStartFrom(replay, {&other}).status().message()),
              HasSubstr("no configuration of the other devices is one here"));
}

}  // namespace
}  // namespace mycc
