// The lease queue: turns, expiry, suspects, late reports, and random sequences of calls.
#include "server/lease_queue.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

constexpr double kLease = 10;

QueuedWork Trial(const std::string& name, const std::string& job = "a") { return {.name = name, .job = job}; }

using Fits = std::function<bool(const std::string& job, const std::string& target)>;
bool Any(const std::string&, const std::string&) { return true; }

// Grants that are in the log at once.
std::vector<Grant> Lease(LeaseQueue& queue, const std::string& holder, int count, double now,
                         const Fits& fits) {
  const std::vector<Grant> grants = queue.Lease({.holder = holder, .fits = fits}, count);
  for (const Grant& grant : grants) EXPECT_TRUE(queue.Confirm(grant.work.name, grant.work.attempt, now));
  return grants;
}

// Does what a server does with leases that ran out, or with those of a worker that is lost.
int Return(LeaseQueue& queue, const std::vector<Grant>& grants, bool blamed) {
  for (const Grant& grant : grants) EXPECT_TRUE(queue.Return(grant.work.name, grant.work.attempt, blamed));
  return static_cast<int>(grants.size());
}
int Expire(LeaseQueue& queue, double now) { return Return(queue, queue.Overdue(now), /*blamed=*/true); }

std::vector<std::string> Names(const std::vector<Grant>& grants) {
  std::vector<std::string> names;
  for (const Grant& grant : grants) names.push_back(grant.work.name);
  return names;
}

TEST(LeaseQueueTest, OldestFirstAndJobsTakeTurns) {
  LeaseQueue queue(kLease);
  for (const char* name : {"a1", "a2", "a3"}) queue.Add(Trial(name, "a"));
  for (const char* name : {"b1", "b2"}) queue.Add(Trial(name, "b"));
  EXPECT_THAT(Names(Lease(queue, "w", 3, 0, Any)), ElementsAre("a1", "b1", "a2"));
  EXPECT_THAT(Names(Lease(queue, "v", 3, 0, Any)), ElementsAre("b2", "a3"));
  EXPECT_EQ(queue.waiting(), 0);
  EXPECT_EQ(queue.leased(), 5);
  EXPECT_EQ(queue.leased_by("w"), 3);
}

TEST(LeaseQueueTest, OnlyJobsThatFit) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("a1", "a"));
  queue.Add(Trial("b1", "b"));
  const auto is_b = [](const std::string& job, const std::string&) { return job == "b"; };
  EXPECT_THAT(Names(Lease(queue, "w", 8, 0, is_b)), ElementsAre("b1"));
  EXPECT_EQ(queue.waiting("a"), 1);
}

TEST(LeaseQueueTest, TargetsOfOneJobDoNotWaitForEachOther) {
  LeaseQueue queue(kLease);
  for (const char* name : {"c1", "c2", "g1"}) {
    QueuedWork trial = Trial(name);
    trial.target = name[0] == 'c' ? "cpu" : "gpu";
    queue.Add(trial);
  }
  const auto is_gpu = [](const std::string&, const std::string& target) { return target == "gpu"; };
  EXPECT_THAT(Names(Lease(queue, "w", 8, 0, is_gpu)), ElementsAre("g1"));
  EXPECT_EQ(queue.waiting("a"), 2);
  EXPECT_EQ(Expire(queue, kLease), 1);
  EXPECT_THAT(Names(Lease(queue, "v", 8, kLease, Any)), ElementsAre("g1")) << "a suspect comes alone";
  EXPECT_EQ(queue.waiting("a"), 2);
  queue.DropWaiting("a");
  EXPECT_EQ(queue.waiting(), 0);
  EXPECT_EQ(queue.waiting("a"), 0);
}

TEST(LeaseQueueTest, LeaseExpiresAndTrialIsRequeued) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  ASSERT_EQ(Lease(queue, "w", 1, 0, Any).size(), 1u);
  EXPECT_TRUE(queue.Overdue(kLease - 0.1).empty());
  EXPECT_EQ(Expire(queue, kLease), 1);
  const auto again = Lease(queue, "v", 1, kLease, Any);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].work.attempt, 2u);
}

TEST(LeaseQueueTest, RenewedLeaseLasts) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  queue.Add(Trial("u"));
  Lease(queue, "w", 1, 0, Any);
  Lease(queue, "v", 1, 0, Any);
  queue.RenewAll("w", 8);
  const auto overdue = queue.Overdue(12);
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_EQ(overdue[0].holder, "v");
}

TEST(LeaseQueueTest, LateReportIsRefused) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  Lease(queue, "w", 1, 0, Any);
  Expire(queue, kLease);
  EXPECT_FALSE(queue.Finish("t", 1)) << "it waits again";
  Lease(queue, "v", 1, kLease, Any);
  EXPECT_FALSE(queue.Finish("t", 1)) << "another worker holds it";
  EXPECT_TRUE(queue.Finish("t", 2));
  EXPECT_FALSE(queue.Finish("t", 2)) << "a repeated report";
  EXPECT_FALSE(queue.Finish("unknown", 1));
}

TEST(LeaseQueueTest, SuspectComesAlone) {
  LeaseQueue queue(kLease);
  for (const char* name : {"a", "b", "c"}) queue.Add(Trial(name));
  Lease(queue, "w1", 3, 0, Any);
  EXPECT_EQ(Return(queue, queue.HeldBy("w1"), /*blamed=*/true), 3);

  // Each suspect comes alone, also when more is asked for, and nothing comes on top of it: the next loss
  // points at one trial.
  const auto first = Lease(queue, "w2", 3, 0, Any);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(Lease(queue, "w2", 3, 0, Any).empty());
  EXPECT_EQ(Return(queue, queue.HeldBy("w2"), true), 1);
  const auto second = Lease(queue, "w3", 3, 0, Any);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].work.name, first[0].work.name);
  EXPECT_EQ(second[0].work.losses, 2u);
}

TEST(LeaseQueueTest, TakenBackGrantWasNeverMade) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("a"));
  const Grant grant = queue.Lease({.holder = "w", .fits = Any}, 1).at(0);
  queue.TakeBack(grant.work.name, grant.work.attempt);
  const auto again = Lease(queue, "w", 1, 0, Any);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].work.attempt, 1u);
}

TEST(LeaseQueueTest, LeaseRunsFromWhenItIsInTheLog) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  ASSERT_EQ(queue.Lease({.holder = "w", .fits = Any}, 1).size(), 1u);
  EXPECT_TRUE(queue.Overdue(100).empty());
  EXPECT_TRUE(queue.HeldBy("w").empty()) << "nobody has heard of it";
  EXPECT_EQ(queue.leased_by("w"), 1);
  EXPECT_TRUE(queue.Confirm("t", 1, 100));
  EXPECT_TRUE(queue.Overdue(109).empty());
  EXPECT_EQ(queue.Overdue(110).size(), 1u);
}

TEST(LeaseQueueTest, EndOnItsWayIntoTheLogIsDecided) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  Lease(queue, "w", 1, 0, Any);
  EXPECT_TRUE(queue.BeginCommit("t", 1));
  EXPECT_FALSE(queue.BeginCommit("t", 1)) << "once";
  EXPECT_TRUE(queue.Overdue(100).empty());
  EXPECT_FALSE(queue.Rebind("t", 1, "v", 0));
  queue.AbortCommit("t", 1, 100);
  EXPECT_EQ(queue.Overdue(110).size(), 1u) << "it is held as before";
}

TEST(LeaseQueueTest, NothingIsLeftOfADroppedJob) {
  LeaseQueue queue(kLease);
  for (const char* name : {"a1", "a2"}) queue.Add(Trial(name, "a"));
  queue.Add(Trial("b1", "b"));
  const Grant granting = queue.Lease({.holder = "w", .fits = Any}, 1).at(0);
  Lease(queue, "w", 1, 0, Any);
  queue.DropJob("a");
  EXPECT_FALSE(queue.Confirm(granting.work.name, granting.work.attempt, 0));
  queue.TakeBack(granting.work.name, granting.work.attempt);
  EXPECT_EQ(queue.waiting("a"), 0);
  EXPECT_EQ(queue.waiting() + queue.leased(), 1);
  EXPECT_EQ(queue.leased_of("a"), 0);
}

TEST(LeaseQueueTest, SuspectsHoldUpNothing) {
  LeaseQueue queue(kLease);
  for (const char* name : {"s1", "s2", "s3"}) {
    QueuedWork suspect = Trial(name);
    suspect.losses = 1;
    queue.Add(suspect);
  }
  for (const char* name : {"t1", "t2", "t3"}) queue.Add(Trial(name));
  EXPECT_THAT(Names(Lease(queue, "w", 2, 0, Any)), ElementsAre("s1")) << "first, and alone";
  EXPECT_THAT(Names(Lease(queue, "w", 2, 0, Any)), ElementsAre("t1", "t2")) << "another lane works on";
  EXPECT_THAT(Names(Lease(queue, "v", 2, 0, Any)), ElementsAre("s2"));
  EXPECT_TRUE(queue.Finish("s1", 1));
  EXPECT_THAT(Names(Lease(queue, "w", 2, 0, Any)), ElementsAre("s3")) << "although it holds others";
  EXPECT_THAT(Names(Lease(queue, "v", 2, 0, Any)), ElementsAre("t3"));
  EXPECT_EQ(queue.waiting(), 0);
}

TEST(LeaseQueueTest, SuspectsOfOneLineAreNotPassedOver) {
  LeaseQueue queue(kLease);
  QueuedWork suspect = Trial("s", "b");
  suspect.losses = 1;
  for (const char* name : {"a1", "a2", "a3", "a4"}) queue.Add(Trial(name, "a"));
  for (const char* name : {"b1", "b2", "b3", "b4"}) queue.Add(Trial(name, "b"));
  EXPECT_THAT(Names(Lease(queue, "w", 2, 0, Any)), ElementsAre("a1", "b1"));
  queue.Add(suspect);
  EXPECT_THAT(Names(Lease(queue, "w", 2, 0, Any)), ElementsAre("s"));
}

TEST(LeaseQueueTest, TrialThatFailedSomewhereHoldsUpNothing) {
  LeaseQueue queue(kLease);
  for (const char* name : {"t1", "t2", "t3"}) queue.Add(Trial(name));
  ASSERT_EQ(Lease(queue, "w", 1, 0, Any).size(), 1u);
  EXPECT_TRUE(queue.ReturnElsewhere("t1", 1, /*blamed=*/false, {"w", "cpu", "no space"}, 0));
  const auto ask = [&queue](const std::string& worker) {
    Asker asker{.holder = worker, .fits = Any};
    asker.may_try = [&worker](const QueuedWork& trial) { return trial.failed_tries[0].worker != worker; };
    return Names(queue.Lease(asker, 2));
  };
  EXPECT_THAT(ask("w"), ElementsAre("t2", "t3"));
  EXPECT_THAT(ask("w"), ::testing::IsEmpty());
  EXPECT_THAT(ask("v"), ElementsAre("t1"));
}

TEST(LeaseQueueTest, OnlyTheHolderRenews) {
  LeaseQueue queue(kLease);
  for (const char* name : {"t", "u"}) queue.Add(Trial(name));
  Lease(queue, "w", 2, 0, Any);
  EXPECT_TRUE(queue.Renew("t", 1, "w", 8));
  EXPECT_FALSE(queue.Renew("t", 1, "v", 8));
  EXPECT_FALSE(queue.Renew("t", 2, "w", 8));
  EXPECT_FALSE(queue.Renew("unknown", 1, "w", 8));
  EXPECT_THAT(Names(queue.Overdue(10)), ElementsAre("u")) << "what was not named";
}

TEST(LeaseQueueTest, ReturnWithoutBlameCountsNoLoss) {
  LeaseQueue queue(kLease);
  queue.Add(Trial("t"));
  for (uint32_t attempt = 1; attempt < 10; ++attempt) {
    ASSERT_EQ(Lease(queue, "w", 1, 0, Any).size(), 1u);
    ASSERT_NE(queue.Find("t", attempt), nullptr);
    EXPECT_EQ(queue.Find("t", attempt)->work.losses, 0u);
    ASSERT_TRUE(queue.Return("t", attempt, /*blamed=*/false));
  }
}

TEST(LeaseQueueTest, AdoptedLeaseKeepsItsAttempt) {
  LeaseQueue queue(kLease);
  QueuedWork trial = Trial("t");
  trial.attempt = 4;
  queue.Adopt(trial, "w-before-restart", 0);
  EXPECT_TRUE(queue.Overdue(14).empty()) << "its holder has to find the server again";
  EXPECT_EQ(queue.Overdue(15).size(), 1u);
  EXPECT_FALSE(queue.Rebind("t", 3, "w", 5));
  EXPECT_TRUE(queue.Rebind("t", 4, "w", 5));
  EXPECT_TRUE(queue.Overdue(14).empty());
  EXPECT_TRUE(queue.Finish("t", 4));
}

TEST(LeaseQueueTest, DroppedJobKeepsItsLeases) {
  LeaseQueue queue(kLease);
  for (const char* name : {"a1", "a2", "a3"}) queue.Add(Trial(name, "a"));
  Lease(queue, "w", 1, 0, Any);
  queue.DropWaiting("a");
  EXPECT_EQ(queue.waiting(), 0);
  ASSERT_EQ(queue.leased_of("a"), 1);
  EXPECT_TRUE(queue.Finish("a1", 1));
}

// A trial is in exactly one place at any time, and finishes once.
TEST(LeaseQueueTest, RandomHistoriesFinishEveryTrialOnce) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    LeaseQueue queue(kLease);
    const int total = 40;
    for (int i = 0; i < total; ++i) queue.Add(Trial("t" + std::to_string(i), "j" + std::to_string(i % 3)));
    std::set<std::string> finished;
    std::vector<Grant> seen;
    double now = 0;
    for (int step = 0; step < 100000 && finished.size() < total; ++step) {
      now += random() % 3;
      const std::string worker = "w" + std::to_string(random() % 4);
      switch (random() % 5) {
        case 0:
          for (const Grant& grant : Lease(queue, worker, 1 + random() % 5, now, Any)) seen.push_back(grant);
          break;
        case 1: queue.RenewAll(worker, now); break;
        case 2: Expire(queue, now); break;
        case 3:
          if (random() % 10 == 0) Return(queue, queue.HeldBy(worker), random() % 2 == 0);
          break;
        default: {
          if (seen.empty()) break;
          // Often one that ended.
          const Grant& grant = seen[seen.size() - 1 - random() % std::min<size_t>(seen.size(), 20)];
          if (queue.Finish(grant.work.name, grant.work.attempt)) {
            EXPECT_TRUE(finished.insert(grant.work.name).second) << grant.work.name;
          }
        }
      }
      ASSERT_EQ(queue.waiting() + queue.leased() + static_cast<int64_t>(finished.size()), total);
    }
    EXPECT_EQ(finished.size(), static_cast<size_t>(total)) << "seed " << seed;
  }
}

QueuedWork Gpu(const std::string& name) {
  return {.name = name, .job = "j", .target = "gpu", .what = TrialWork{"trace of " + name}};
}

TEST(BuiltTrials, AreLeasedFirstAndFewAtOnce) {
  LeaseQueue queue(10);
  for (const char* name : {"a", "b", "c", "d"}) queue.Add(Gpu(name));
  EXPECT_FALSE(queue.SetBuilt("j", "gpu", "x", "builder"));
  EXPECT_TRUE(queue.SetBuilt("j", "gpu", "c", "builder"));
  EXPECT_TRUE(queue.SetBuilt("j", "gpu", "d", "builder"));
  EXPECT_FALSE(queue.SetBuilt("j", "gpu", "d", "builder")) << "it is built already";
  Asker asker{.holder = "h", .device = "d", .fits = [](const auto&, const auto&) { return true; }};
  asker.most_built = 1;
  std::vector<Grant> grants = queue.Lease(asker, 4);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].work.name, "c");
  EXPECT_EQ(grants[0].work.built_by, "builder");
  asker.may_build = [](const QueuedWork& work) { return work.name != "a"; };
  asker.most_built = 4;
  grants = queue.Lease(asker, 4);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].work.name, "d");
  EXPECT_EQ(grants[1].work.name, "b");
  EXPECT_EQ(queue.waiting(), 1);
}

TEST(BuiltTrials, ATrialThatReturnsIsStillBuiltUnlessItsBuildIsDoubted) {
  LeaseQueue queue(10);
  std::vector<std::string> unbuilt;
  queue.Listen({[&](const QueuedWork& work) { unbuilt.push_back(work.name); },
                [&](const QueuedWork& work) { std::erase(unbuilt, work.name); }});
  queue.Add(Gpu("a"));
  EXPECT_EQ(unbuilt, std::vector<std::string>{"a"});
  ASSERT_TRUE(queue.SetBuilt("j", "gpu", "a", "builder"));
  const Asker asker{.holder = "h", .device = "d", .fits = [](const auto&, const auto&) { return true; }};
  Grant grant = queue.Lease(asker, 1).at(0);
  ASSERT_TRUE(queue.Confirm("a", grant.work.attempt, 0));
  queue.Return("a", grant.work.attempt, /*blamed=*/false);
  grant = queue.Lease(asker, 1).at(0);
  EXPECT_EQ(grant.work.built_by, "builder");
  queue.Confirm("a", grant.work.attempt, 0);
  queue.DoubtBuild("a", grant.work.attempt);
  queue.Return("a", grant.work.attempt, /*blamed=*/false);
  grant = queue.Lease(asker, 1).at(0);
  EXPECT_EQ(grant.work.built_by, "");
  EXPECT_EQ(grant.work.doubted_builder, "builder");
}

TEST(BuiltTrials, UnbuiltOnesAreLeasedByNameOrWithdrawn) {
  LeaseQueue queue(10);
  int gone = 0;
  queue.Listen({nullptr, [&](const QueuedWork&) { ++gone; }});
  for (const char* name : {"a", "b", "c"}) queue.Add(Gpu(name));
  const Asker asker{.holder = "h", .device = ""};
  EXPECT_EQ(queue.LeaseUnbuilt(asker, "j", "gpu", "b")->work.attempt, 1u);
  EXPECT_TRUE(queue.is_leased("b"));
  EXPECT_FALSE(queue.LeaseUnbuilt(asker, "j", "gpu", "b").has_value());
  EXPECT_TRUE(queue.Withdraw("j", "gpu", "c"));
  EXPECT_FALSE(queue.Withdraw("j", "gpu", "c"));
  EXPECT_EQ(gone, 1) << "the build of c is not wanted any more";
  queue.DropWaiting("j");
  EXPECT_EQ(gone, 2);
  EXPECT_EQ(queue.waiting(), 0);
}

}  // namespace
}  // namespace mycc
