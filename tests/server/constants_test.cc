// The constants of devices between workers, the log and jobs: who is asked for them, what is refused, and
// which ones a job keeps.
#include <cmath>

#include "db/constants_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/device_constants.h"
#include "proto/job_state.pb.h"
#include "server/device_choice.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::DeviceConstants Made(double peak, double clock = 3e9) {
  v1::DeviceConstants made;
  made.set_version(kConstantsVersion);
  (*made.mutable_values())[kThreadsConstant] = 2;
  (*made.mutable_values())[kClockConstant] = clock;
  (*made.mutable_values())[kPeakOfThread] = peak;
  return made;
}

class ConstantsTest : public ::testing::Test {
 protected:
  static CoordinatorOptions Options(std::vector<std::string>* said) {
    CoordinatorOptions options = FakeServer::DefaultOptions();
    options.dispatch.log = [said](const Event& event) { said->push_back(event.text); };
    return options;
  }
  // A worker that can measure its device, on a host of its own; `asked` gets what it is asked for.
  FakeWorker Worker(const std::string& name, uint32_t version = kConstantsVersion) {
    FakeWorker worker(&server_, name);
    worker.devices[0].mutable_constants()->set_version(version);
    worker.devices[0].mutable_info()->set_host("host of " + name);
    return worker;
  }
  static std::vector<std::string> AskedOf(FakeWorker* worker) {
    const v1::RegisterResponse response = worker->Register();
    return {response.unmeasured().begin(), response.unmeasured().end()};
  }
  std::vector<StoredConstants> Listed() { return *ConstantsStore(&server_.log()).List(); }
  // The constants of the job's first task, as the log has them.
  v1::DeviceConstants FrozenIn(const std::string& job) {
    v1::StoredTask stored;
    EXPECT_TRUE(stored.ParseFromString(JobStore(&server_.log()).LoadTasks(job)->at(0).spec));
    return stored.constants();
  }

  std::vector<std::string> said_;
  FakeServer server_{Options(&said_)};
};

TEST_F(ConstantsTest, AWorkerIsAskedOnce) {
  FakeWorker worker = Worker("w");
  EXPECT_THAT(AskedOf(&worker), ElementsAre("cpu"));
  EXPECT_THAT(AskedOf(&worker), ElementsAre("cpu")) << "it has not told them";
  ASSERT_TRUE(worker.Beat({{"cpu", Made(1e11)}}).ok());
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(Listed()[0].host, "host of w");
  EXPECT_EQ(Listed()[0].target, kTestTarget);
  EXPECT_EQ(ConstantOf(Listed()[0].constants, kPeakOfThread), 1e11);
  EXPECT_GT(Listed()[0].measured_unix_micros, 0);
  EXPECT_THAT(AskedOf(&worker), IsEmpty());
  server_.Restart();
  EXPECT_THAT(AskedOf(&worker), IsEmpty());
  FakeWorker other = Worker("other");
  EXPECT_THAT(AskedOf(&other), ElementsAre("cpu")) << "on another host";
  worker.devices[0].mutable_info()->set_model("another processor");
  EXPECT_THAT(AskedOf(&worker), ElementsAre("cpu"));
}

TEST_F(ConstantsTest, WhoCannotMeasureThemIsNotAsked) {
  FakeWorker before(&server_, "before", kTestTarget, FakeWorker::Version::kBefore);
  EXPECT_THAT(before.Register().unmeasured(), IsEmpty());
  FakeWorker none = Worker("none", 0), newer = Worker("newer", kConstantsVersion + 1);
  EXPECT_THAT(AskedOf(&none), IsEmpty());
  EXPECT_THAT(AskedOf(&newer), IsEmpty());
}

TEST_F(ConstantsTest, WhatCannotBeRightIsRefusedAndTheRestKept) {
  FakeWorker worker = Worker("w");
  worker.Register();
  v1::DeviceConstants told = Made(1e11, std::nan(""));
  (*told.mutable_values())["horsepower"] = 200;
  EXPECT_TRUE(worker.Beat({{"cpu", told}, {"cuda:7", Made(1e11)}}).ok());
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(Listed()[0].constants.values_size(), 2);
  EXPECT_THAT(said_, ::testing::Contains(HasSubstr(
                         "cpu: the constant clock_cycles_per_second is nan; expected 1e+08 to 2e+10")));
  EXPECT_EQ(server_->workers().Devices()[0].refused(), 3);
}

TEST_F(ConstantsTest, NothingIsKeptOfConstantsThatAreAllWrong) {
  FakeWorker worker = Worker("w");
  worker.Register();
  v1::DeviceConstants other_version = Made(1e11), huge;
  other_version.set_version(kConstantsVersion + 1);
  huge.set_version(kConstantsVersion);
  for (int i = 0; i < 1000; ++i) (*huge.mutable_values())["constant " + std::to_string(i)] = i;
  for (const v1::DeviceConstants& told : {other_version, huge, Made(-1e11, -1)}) {
    v1::DeviceConstants wrong = told;
    wrong.mutable_values()->erase(kThreadsConstant);
    EXPECT_TRUE(worker.Beat({{"cpu", wrong}}).ok());
  }
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_THAT(AskedOf(&worker), ElementsAre("cpu"));
}

TEST_F(ConstantsTest, KnownOnesAreNotReplaced) {
  FakeWorker worker = Worker("w");
  worker.Register();
  ASSERT_TRUE(worker.Beat({{"cpu", Made(1e11)}}).ok());
  ASSERT_TRUE(worker.Beat({{"cpu", Made(2e11)}}).ok());
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(ConstantOf(Listed()[0].constants, kPeakOfThread), 1e11);
  EXPECT_EQ(server_->workers().Devices()[0].refused(), 0);
}

TEST_F(ConstantsTest, WhatTheLogHasForgottenIsAskedForAgain) {
  FakeWorker oldest = Worker("oldest"), newest = Worker("newest");
  oldest.Register();
  ASSERT_TRUE(oldest.Beat({{"cpu", Made(1e11)}}).ok());
  ASSERT_EQ(Listed().size(), 1u);
  ASSERT_TRUE(
      server_.log()
          .database()
          ->Run("INSERT INTO device_constants (host, device, model, target, version, worker, measured, "
                "detail) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)"
                " SELECT 'host' || i, 'cpu', '', '', ?2, '', measured + i, detail"
                " FROM n, device_constants WHERE worker = 'oldest'",
                {ConstantsStore::kMostDevices, int64_t{kConstantsVersion}})
          .ok());
  server_.Restart();
  ASSERT_EQ(Listed().size(), static_cast<size_t>(ConstantsStore::kMostDevices));
  EXPECT_THAT(AskedOf(&oldest), IsEmpty());
  server_.Wait(1);
  newest.Register();
  ASSERT_TRUE(newest.Beat({{"cpu", Made(1e11)}}).ok());
  ASSERT_EQ(Listed().size(), static_cast<size_t>(ConstantsStore::kMostDevices));
  EXPECT_THAT(AskedOf(&oldest), ElementsAre("cpu"));
}

TEST_F(ConstantsTest, ALogThatCannotBeWrittenCostsTheConstantsAlone) {
  FakeWorker worker = Worker("w");
  worker.Register();
  server_.FailWrites(absl::UnavailableError("the disk is full"));
  EXPECT_TRUE(worker.Beat({{"cpu", Made(1e11)}}).ok());
  server_.FailWrites(absl::OkStatus());
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_THAT(said_, ::testing::Contains(HasSubstr("the constants of cpu of worker w are not kept")));
  EXPECT_THAT(AskedOf(&worker), ElementsAre("cpu"));
}

TEST_F(ConstantsTest, AJobKeepsThoseThatThereWereWhenItBegan) {
  FakeWorker worker = Worker("w");
  worker.Register();
  const std::string before = server_.Submit(MakeSpec({kTestWorkload}, 24));
  EXPECT_THAT(FrozenIn(before).values(), IsEmpty());
  ASSERT_TRUE(worker.Beat({{"cpu", Made(5e10, 1e9)}}).ok());
  EXPECT_THAT(FrozenIn(before).values(), IsEmpty());
  const std::string after = server_.Submit(MakeSpec({kTestWorkload}, 24, /*seed=*/2));
  EXPECT_EQ(ConstantOf(FrozenIn(after), kPeakOfThread), 5e10);

  // A second device, which is chosen from now on.
  FakeWorker other = Worker("other");
  other.Register();
  ASSERT_TRUE(other.Beat({{"cpu", Made(4e10, 1e9)}}).ok());
  server_.Restart();
  EXPECT_EQ(ConstantOf(FrozenIn(after), kPeakOfThread), 5e10);
  const std::string latest = server_.Submit(MakeSpec({kTestWorkload}, 24, /*seed=*/3));
  EXPECT_EQ(ConstantOf(FrozenIn(latest), kPeakOfThread), 4e10);
}

// The same job with and without constants, and with a restart in its middle.
TEST_F(ConstantsTest, TheSearchGoesOnWithTheJobsConstants) {
  const auto traces_of = [](bool with_constants, bool restarts) {
    FakeServer server;
    FakeWorker worker(&server, "w");
    worker.devices[0].mutable_constants()->set_version(kConstantsVersion);
    worker.Register();
    v1::DeviceConstants slow_memory = Made(1.6e11);
    (*slow_memory.mutable_values())[kMemoryOfThread] = 3e9;
    (*slow_memory.mutable_values())[kL3OfThread] = 6e9;
    (*slow_memory.mutable_values())[kL2OfThread] = 12e9;
    (*slow_memory.mutable_values())[kL1OfThread] = 24e9;
    if (with_constants) {
      EXPECT_TRUE(worker.Beat({{"cpu", slow_memory}}).ok());
    }
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 24));
    for (const v1::Assignment& assignment : worker.Lease(6)) EXPECT_TRUE(worker.Report(assignment).ok());
    if (restarts) {
      server.Restart();
      worker.Register();
    }
    worker.Work();
    return server.TracesOf(job);
  };
  const auto undisturbed = traces_of(true, false), restarted = traces_of(true, true);
  std::vector<std::string> one, other, none;
  for (const auto& [trial, trace] : undisturbed) one.push_back(trace);
  for (const auto& [trial, trace] : restarted) other.push_back(trace);
  for (const auto& [trial, trace] : traces_of(false, false)) none.push_back(trace);
  EXPECT_EQ(one.size(), 24u);
  EXPECT_EQ(one, other);
  EXPECT_NE(one, none);
}

StoredConstants Known(const std::string& host, const std::string& target, double peak) {
  StoredConstants known;
  known.host = host;
  known.target = target;
  known.constants = Made(peak);
  return known;
}

TEST(DeviceChoiceTest, TheMiddleOneOfThoseThatFit) {
  const std::string with_four = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=4";
  const DeviceChoice devices({Known("a", kTestTarget, 9e12), Known("b", kTestTarget, 2e11),
                              Known("c", kTestTarget, 1e9), Known("d", with_four, 3e11),
                              Known("e", "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=2", 5e11),
                              Known("f", "nonsense", 6e11)});
  const auto peak_for = [&](const std::string& target) {
    const v1::DeviceConstants* const chosen = devices.For(*ParseTarget(target));
    return chosen == nullptr ? 0 : ConstantOf(*chosen, kPeakOfThread);
  };
  EXPECT_EQ(peak_for(kTestTarget), 2e11);
  EXPECT_EQ(peak_for(with_four), 3e11);
  EXPECT_EQ(peak_for("v1 cpu mcpu=haswell l1d=32K l2=256K threads=1"), 2e11) << "of all four";
  EXPECT_EQ(peak_for("v1 cpu mcpu=haswell l1d=32K l2=256K threads=2 sums=direct"), 2e11);
  EXPECT_EQ(peak_for("v1 cpu mcpu=haswell l1d=32K l2=512K threads=2"), 0);
  EXPECT_EQ(peak_for("h200"), 0);
}

}  // namespace
}  // namespace mycc
