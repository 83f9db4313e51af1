// The cost of each further percent.
#include "server/milestones.h"

#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(MilestonesTest, BeginWhenAllTasksHaveATime) {
  Milestones milestones({2, 1, 0});
  milestones.OnBest(0, 1.0, 3, 0.5);
  milestones.OnBest(2, 0.1, 4, 0.6);  // launched by another grouping alone
  EXPECT_TRUE(milestones.list().empty());
  milestones.OnBest(1, 2.0, 9, 1.5);
  ASSERT_EQ(milestones.list().size(), 1u);
  EXPECT_EQ(milestones.list()[0].trials, 9);
  EXPECT_EQ(milestones.list()[0].elapsed_seconds, 1.5);
  EXPECT_DOUBLE_EQ(milestones.list()[0].latency_seconds, 4.0);
}

TEST(MilestonesTest, TasksThatAreNotSearchedHaveTheTimeThatIsKnown) {
  Milestones milestones({2, 1});
  milestones.OnBest(0, 1.0, 3, 0.5);
  EXPECT_TRUE(milestones.list().empty());
  milestones.SetKnown(1, 3.0);
  milestones.SetKnown(1, 2.0);  // another job's gain
  milestones.OnBest(0, 0.5, 4, 0.7);
  ASSERT_EQ(milestones.list().size(), 1u);
  EXPECT_DOUBLE_EQ(milestones.list()[0].latency_seconds, 4.0);
  milestones.SetKnown(1, 0);  // it is to be searched after all
  milestones.OnBest(0, 0.25, 5, 0.8);
  EXPECT_EQ(milestones.list().size(), 1u);
  milestones.OnBest(1, 1.5, 6, 0.9);
  ASSERT_EQ(milestones.list().size(), 2u);
  EXPECT_DOUBLE_EQ(milestones.list()[1].latency_seconds, 2.0);
}

TEST(MilestonesTest, OneForEachPercentOrForSeveralAtOnce) {
  Milestones milestones({1});
  milestones.OnBest(0, 1.0, 1, 1);
  milestones.OnBest(0, 0.995, 2, 2);
  EXPECT_EQ(milestones.list().size(), 1u) << "half a percent";
  milestones.OnBest(0, 0.985, 3, 3);
  EXPECT_EQ(milestones.list().size(), 2u);
  milestones.OnBest(0, 0.981, 4, 4);
  EXPECT_EQ(milestones.list().size(), 2u);
  milestones.OnBest(0, 0.705, 5, 5);
  ASSERT_EQ(milestones.list().size(), 3u);
  EXPECT_EQ(milestones.list()[2].trials, 5);
  milestones.OnBest(0, 0.703, 6, 6);
  EXPECT_EQ(milestones.list().size(), 3u);
}

}  // namespace
}  // namespace mycc
