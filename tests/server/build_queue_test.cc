// Orders beside the trials that they are for, as trials leave the queue and come back to it.
#include "server/build_queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_builder.h"

namespace mycc {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kLeaseSeconds = 10;

class BuildQueueTest : public ::testing::Test {
 protected:
  const WorkerTable::Session* Builder(const std::string& name) {
    v1::RegisterRequest request;
    request.set_worker(name);
    request.set_instance(name);
    request.set_role(v1::WORKER_ROLE_BUILD);
    request.add_build_targets(kGpuTestTarget);
    std::optional<WorkerTable::Session> replaced;
    return *workers_.Register(request, 0, &replaced, nullptr);
  }
  std::vector<Grant> Lease(const WorkerTable::Session* builder) {
    return queue_.Lease(
        *builder, 8, [](const std::string&) { return true; }, 0);
  }
  static QueuedWork Trial() {
    return {.name = "job/0/0/0", .job = "job", .target = kGpuTestTarget, .what = TrialWork{"trace"}};
  }

  LeaseQueue trials_{kLeaseSeconds};
  WorkerTable workers_{kLeaseSeconds};
  BuildQueue queue_{kLeaseSeconds, &trials_, &workers_};
};

// A trial of another job takes its place, and it comes back when that job is cancelled.
TEST_F(BuildQueueTest, ATrialThatComesBackHasOneOrder) {
  const WorkerTable::Session* const first = Builder("first");
  trials_.Add(Trial());
  ASSERT_THAT(Lease(first), SizeIs(1));
  ASSERT_TRUE(trials_.Withdraw("job", kGpuTestTarget, Trial().name));
  queue_.ReturnAllOf(first->id);
  trials_.Add(Trial());
  std::vector<Grant> leased = queue_.Lease(
      *first, 1, [](const std::string&) { return true; }, 0);
  ASSERT_THAT(leased, SizeIs(1));
  EXPECT_THAT(Lease(Builder("second")), IsEmpty()) << "one builds it already";
  queue_.Built(leased[0], "first");
  queue_.Tick(10 * kLeaseSeconds);
  queue_.ReturnAllOf(first->id);
  EXPECT_EQ(trials_.waiting(), 1);
}

// An order whose trial has left the queue is its builder's no more: it is told so at its next word.
TEST_F(BuildQueueTest, AnOrderWithoutItsTrialIsRevoked) {
  const WorkerTable::Session* const builder = Builder("first");
  trials_.Add(Trial());
  const std::vector<Grant> leased = Lease(builder);
  ASSERT_THAT(leased, SizeIs(1));
  v1::LeaseId lease;
  lease.set_trial(leased[0].work.name);
  lease.set_attempt(leased[0].work.attempt);
  EXPECT_TRUE(queue_.Renew(lease, builder->id, 1));
  ASSERT_TRUE(trials_.Withdraw("job", kGpuTestTarget, Trial().name));
  EXPECT_FALSE(queue_.Renew(lease, builder->id, 2));
  EXPECT_THAT(Lease(builder), IsEmpty()) << "nobody waits for it";
}

}  // namespace
}  // namespace mycc
