// The trials in flight for a job, and those that one device leases, by the size of the farm.
#include "server/farm_window.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::SizeIs;

TEST(FarmWindowTest, NoneInANarrowFarm) {
  for (const int64_t devices : {0, 1, 8, 32}) EXPECT_EQ(WindowFor(devices, 0), 0u);
}

TEST(FarmWindowTest, APowerOfTwoThatHoldsFiveTrialsOfEachDevice) {
  EXPECT_EQ(WindowFor(33, 0), 256u);
  EXPECT_EQ(WindowFor(64, 0), 512u);
  EXPECT_EQ(WindowFor(86, 256), 512u);
  EXPECT_EQ(WindowFor(1000, 256), 8192u);
}

TEST(FarmWindowTest, ShrinksWhenAQuarterWouldDo) {
  EXPECT_EQ(WindowFor(200, 2048), 2048u);
  EXPECT_EQ(WindowFor(100, 2048), 1024u);
  EXPECT_EQ(WindowFor(0, 2048), 2048u) << "just after a restart";
  uint32_t window = 2048;
  for (int i = 0; i < 20; ++i) window = WindowFor(4, window);
  EXPECT_EQ(window, 0u);
}

TEST(FarmWindowTest, ANarrowFarmHasTheLeastWindow) {
  for (const int64_t devices : {1, 32}) {
    EXPECT_EQ(WindowFor(devices, 0, kNoneUnseen), kNoneUnseen);
    EXPECT_EQ(WindowFor(devices, kNoneUnseen, kNoneUnseen), kNoneUnseen);
    EXPECT_EQ(WindowFor(devices, 16, 16), 16u);
    EXPECT_EQ(WindowFor(devices, 0, 16), 16u);
  }
  EXPECT_EQ(WindowFor(0, kNoneUnseen, kNoneUnseen), kNoneUnseen) << "just after a restart";
  EXPECT_EQ(WindowFor(33, kNoneUnseen, kNoneUnseen), 256u);
  for (const uint32_t least : {uint32_t{16}, kNoneUnseen}) {
    uint32_t window = 2048;
    for (int i = 0; i < 20; ++i) window = WindowFor(4, window, least);
    EXPECT_EQ(window, least);
  }
}

TEST(FarmWindowTest, ADeviceLeasesItsShareWhereTrialsAreScarce) {
  EXPECT_EQ(ShareOf(8, 10, 4), 8);
  EXPECT_EQ(ShareOf(8, 200, 50), 2);
  EXPECT_EQ(ShareOf(8, 10, 50), 1);
  EXPECT_EQ(ShareOf(8, 1000, 50), 8);
}

// And no device takes what others could begin with.
TEST(WideFarmTest, EachDeviceHasATrial) {
  FakeServer server;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < 80; ++i) workers.push_back(std::make_unique<FakeWorker>(&server, absl::StrCat("w", i)));
  v1::JobSpec spec = MakeSpec({kTestWorkload, kOtherWorkload}, 400);
  spec.set_strategy("random");
  server.Submit(spec);
  server.Wait(1);
  std::vector<v1::Assignment> held;
  for (const auto& worker : workers) {
    const std::vector<v1::Assignment> leased = worker->Lease(8);
    EXPECT_THAT(leased, SizeIs(::testing::AllOf(::testing::Ge(1), ::testing::Le(4))));
    held.insert(held.end(), leased.begin(), leased.end());
  }
  EXPECT_GE(held.size(), 80u);
}

}  // namespace
}  // namespace mycc
