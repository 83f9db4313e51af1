// The rule by which trials have their turns: priorities, shares of owners and jobs, and no job that starves.
// A simulated device takes one trial after the other.
#include "server/fair_share.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

// A farm of devices that are all alike, on which each job has endless trials of its own length.
class Farm {
 public:
  void Add(const std::string& job, const JobTerms& terms, double trial_seconds) {
    jobs_[job] = {terms.owner, trial_seconds};
    share_.SetTerms(job, terms, now_);
    share_.SetWaiting(job, true, now_);
  }
  void Rest(const std::string& job) { share_.SetWaiting(job, false, now_); }
  void Wake(const std::string& job) { share_.SetWaiting(job, true, now_); }

  // The job that has the next turn, whose trial is over at once.
  std::string Next() {
    std::string taken;
    const auto take = [&](const std::string& job) {
      taken = job;
      return true;
    };
    if (!share_.Offer(FairShare::Which::kOrdinary, "cpu", take))
      share_.Offer(FairShare::Which::kIdleOnly, "cpu", take);
    if (taken.empty()) return "";
    const double charged = share_.Charge(taken, now_);
    now_ += jobs_[taken].trial_seconds;
    share_.Settle(taken, charged, jobs_[taken].trial_seconds, now_);
    return taken;
  }
  // The device time of each owner in the next `seconds`.
  std::map<std::string, double> Run(double seconds) {
    std::map<std::string, double> used;
    for (const double end = now_ + seconds; now_ < end;) {
      const std::string job = Next();
      used[jobs_[job].owner] += jobs_[job].trial_seconds;
    }
    return used;
  }
  FairShare& share() { return share_; }
  double now() const { return now_; }

 private:
  struct Job {
    std::string owner;
    double trial_seconds;
  };
  FairShare share_;
  std::map<std::string, Job> jobs_;
  double now_ = 1000;
};

TEST(FairShareTest, OwnersHaveEqualSharesHoweverManyJobsTheyHave) {
  Farm farm;
  for (int i = 0; i < 10; ++i) farm.Add(absl::StrCat("a", i), {.owner = "ann"}, 1);
  farm.Add("b0", {.owner = "bob"}, 1);
  const auto used = farm.Run(1000);
  EXPECT_NEAR(used.at("ann"), 500, 10);
  EXPECT_NEAR(used.at("bob"), 500, 10);
}

TEST(FairShareTest, DeviceTimeIsSharedNotTrials) {
  Farm farm;
  farm.Add("long", {.owner = "ann"}, 8);
  farm.Add("short", {.owner = "bob"}, 0.5);
  const auto used = farm.Run(2000);
  EXPECT_NEAR(used.at("ann"), 1000, 50);
  EXPECT_NEAR(used.at("bob"), 1000, 50);
}

TEST(FairShareTest, JobsOfOneOwnerShareToo) {
  Farm farm;
  farm.Add("long", {.owner = "ann"}, 4);
  farm.Add("short", {.owner = "ann"}, 1);
  std::map<std::string, int> turns;
  for (int i = 0; i < 500; ++i) ++turns[farm.Next()];
  EXPECT_NEAR(turns.at("short"), 400, 20);
}

TEST(FairShareTest, ANewOwnerGetsItsShareAndNoDebtOfThePast) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 1);
  farm.Run(5000);
  farm.Add("b", {.owner = "bob"}, 1);
  const auto used = farm.Run(100);
  EXPECT_NEAR(used.at("ann"), 50, 5) << "she was alone before, and loses nothing for it";
  EXPECT_NEAR(used.at("bob"), 50, 5);
}

TEST(FairShareTest, AnOwnerThatWasAwayComesBackLevel) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 1);
  farm.Add("b", {.owner = "bob"}, 1);
  farm.Run(100);
  farm.Rest("b");
  farm.Run(1000);
  farm.Wake("b");
  const auto used = farm.Run(100);
  EXPECT_NEAR(used.at("bob"), 50, 5);
}

TEST(FairShareTest, AMomentWithoutTrialsCostsNothing) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 1);
  farm.Add("b", {.owner = "bob"}, 1);
  farm.Run(10);
  farm.Rest("b");
  farm.Run(20);
  farm.Wake("b");
  const auto used = farm.Run(40);
  EXPECT_NEAR(used.at("bob"), 30, 5) << "its search was thinking: what it missed is made up for";
}

TEST(FairShareTest, TrialsUnderWayCount) {
  FairShare share;
  for (const char* const job : {"a", "b"}) {
    share.SetTerms(job, {.owner = job}, 0);
    share.SetWaiting(job, true, 0);
  }
  std::map<std::string, int> granted;
  for (int device = 0; device < 100; ++device) {
    share.Offer(FairShare::Which::kOrdinary, "cpu", [&](const std::string& job) {
      ++granted[job];
      share.Charge(job, 0);
      return true;
    });
  }
  EXPECT_EQ(granted.at("a"), 50) << "a hundred devices ask before the first trial ends";
}

TEST(FairShareTest, HigherPrioritiesComeFirstAndNobodyStarves) {
  Farm farm;
  farm.Add("high", {.owner = "ann", .priority = 5}, 1);
  for (int i = 0; i < 3; ++i) farm.Add(absl::StrCat("low", i), {.owner = "bob", .priority = -10}, 1);
  std::map<std::string, int> turns;
  for (int i = 0; i < 16 * 4 * 10; ++i) ++turns[farm.Next()];
  for (int i = 0; i < 3; ++i) EXPECT_GE(turns[absl::StrCat("low", i)], 10) << "one of 16 n turns at least";
  EXPECT_EQ(turns["high"] + turns["low0"] + turns["low1"] + turns["low2"], 640);
  EXPECT_GE(turns["high"], 600);
}

TEST(FairShareTest, TheTurnsOfOnePoolStarveNobodyInAnother) {
  FairShare share;
  const std::string jobs[] = {"gpu high", "gpu low", "cpu"};
  for (const std::string& job : jobs) {
    share.SetTerms(job, {.owner = job, .priority = job == "gpu low" ? 0 : 1}, 0);
    share.SetWaiting(job, true, 0);
  }
  const auto offer = [&](const std::string& pool) {
    std::string taken;
    share.Offer(FairShare::Which::kOrdinary, pool, [&](const std::string& job) {
      if (job.substr(0, 3) != pool) return false;
      taken = job;
      return true;
    });
    return taken;
  };
  int low = 0;
  for (int i = 0; i < 64; ++i) {
    low += offer("gpu") == "gpu low";
    for (int other = 0; other < 15; ++other) EXPECT_EQ(offer("cpu"), "cpu");
  }
  EXPECT_GE(low, 2);
}

TEST(FairShareTest, IdleJobsComeAfterAllOthers) {
  Farm farm;
  farm.Add("idle", {.owner = "ann", .priority = 10, .only_when_idle = true}, 1);
  farm.Add("low", {.owner = "bob", .priority = -10}, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(farm.Next(), "low");
  farm.Rest("low");
  EXPECT_EQ(farm.Next(), "idle");
  farm.Wake("low");
  EXPECT_EQ(farm.Next(), "low");
}

TEST(FairShareTest, ChangedTermsCountAtOnce) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 1);
  farm.Add("b", {.owner = "bob"}, 1);
  farm.Run(10);
  farm.share().SetTerms("b", {.owner = "bob", .priority = 1}, farm.now());
  std::vector<std::string> turns;
  for (int i = 0; i < 3; ++i) turns.push_back(farm.Next());
  EXPECT_THAT(turns, ElementsAre("b", "b", "b"));
}

TEST(FairShareTest, SharesHoldForWeeks) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 30);
  farm.Add("b", {.owner = "bob"}, 10);
  const auto used = farm.Run(3e6);
  EXPECT_NEAR(used.at("ann"), 1.5e6, 1e5);
  farm.share().Forget("a", farm.now());
  EXPECT_EQ(farm.Next(), "b");
}

TEST(FairShareTest, AJobThatEndsLeavesTheOthersOfItsOwner) {
  Farm farm;
  farm.Add("a", {.owner = "ann"}, 1);
  farm.Add("b", {.owner = "ann"}, 1);
  farm.share().Forget("a", farm.now());
  EXPECT_EQ(farm.Next(), "b");
  farm.share().Forget("b", farm.now());
  EXPECT_EQ(farm.Next(), "");
}

TEST(FairShareTest, ATrialWithoutAResultCostsNothing) {
  FairShare share;
  for (const char* const job : {"a", "b"}) {
    share.SetTerms(job, {.owner = job}, 0);
    share.SetWaiting(job, true, 0);
  }
  const auto next = [&] {
    std::string taken;
    share.Offer(FairShare::Which::kOrdinary, "cpu", [&](const std::string& job) {
      taken = job;
      return true;
    });
    return taken;
  };
  EXPECT_EQ(next(), "a");
  share.Settle("a", share.Charge("a", 0), std::nullopt, 1);
  EXPECT_EQ(next(), "a") << "its worker was lost";
  share.Settle("a", share.Charge("a", 1), 5, 6);
  EXPECT_EQ(next(), "b");
}

}  // namespace
}  // namespace mycc
