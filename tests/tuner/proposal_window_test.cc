// Which outcomes a proposal depends on.
#include "tuner/scheduler/proposal_window.h"

#include "gtest/gtest.h"

namespace mycc {
namespace {

ProposalWindow Of(int proposals, int64_t window) {
  ProposalWindow made;
  for (int i = 0; i < proposals; ++i) made.Add(16, window);
  return made;
}

TEST(ProposalWindowTest, WithoutAWindowAllButTheLatest) {
  EXPECT_EQ(ProposalWindow().Visible(0), 0);
  EXPECT_EQ(Of(1, 0).Visible(0), 0);
  EXPECT_EQ(Of(7, 0).Visible(0), 6);
  EXPECT_EQ(Of(7, 1).Visible(16), 6);
}

TEST(ProposalWindowTest, TheLatestHoldTheWindow) {
  EXPECT_EQ(Of(7, 40).Visible(40), 4);
  EXPECT_EQ(Of(7, 48).Visible(48), 4);
  EXPECT_EQ(Of(7, 49).Visible(49), 3);
  EXPECT_EQ(Of(7, 1000).Visible(1000), 0);
}

TEST(ProposalWindowTest, AWiderOneUnseesNothing) {
  ProposalWindow window = Of(7, 1);  // the latest depends on five
  EXPECT_EQ(window.Visible(1000), 5);
  for (int i = 0; i < 3; ++i) window.Add(16, 1000);
  EXPECT_EQ(window.Visible(1000), 5);
  EXPECT_EQ(window.Visible(20), 8);
  window.Add(16, 20);
  EXPECT_EQ(window.Visible(1000), 8);
}

TEST(ProposalWindowTest, WithNoneUnseenAll) {
  EXPECT_EQ(ProposalWindow().Visible(kNoneUnseen), 0);
  ProposalWindow window = Of(7, kNoneUnseen);
  EXPECT_EQ(window.Visible(kNoneUnseen), 7);
  EXPECT_EQ(window.Visible(0), 6) << "the latest may be unseen again";
  window.Add(4, 0);
  EXPECT_EQ(window.Visible(kNoneUnseen), 8);
}

TEST(ProposalWindowTest, CountsCandidatesOfAnySize) {
  ProposalWindow window;
  for (const int64_t size : {16, 4, 1, 1, 9}) window.Add(size, 12);
  EXPECT_EQ(window.Visible(9), 4);
  EXPECT_EQ(window.Visible(10), 3);
  EXPECT_EQ(window.Visible(12), 1);
}

}  // namespace
}  // namespace mycc
