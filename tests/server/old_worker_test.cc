// A worker of the version before this one, which sends the old fields alone, on this version's server.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OldWorkerTest : public ::testing::Test {
 protected:
  static v1::JobSpec Spec(v1::TimingProtocol protocol) {
    v1::JobSpec spec = MakeSpec({kTestWorkload}, 8);
    spec.set_protocol(protocol);
    return spec;
  }

  FakeServer server_;
  FakeWorker old_{&server_, "old", kTestTarget, FakeWorker::Version::kBefore};
};

TEST_F(OldWorkerTest, DoesAWholeJob) {
  const std::string job = server_.Submit(Spec(v1::TIMING_PROTOCOL_COLD));
  EXPECT_EQ(old_.Work(), 8);
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST_F(OldWorkerTest, GetsNoProtocolThatItDoesNotKnow) {
  const std::string job = server_.Submit(Spec(v1::TIMING_PROTOCOL_MODEL));
  EXPECT_THAT(old_.Lease(4), IsEmpty());
  EXPECT_THAT(server_.Progress(job).message(),
              HasSubstr("and time by the protocol model (the workers for it are older, and do not know it)"));
  FakeWorker current(&server_, "new");
  EXPECT_THAT(server_.Progress(job).message(), IsEmpty());
  EXPECT_EQ(current.Work(), 8);
}

// A device that does not know the protocol is asked for no second opinion.
TEST_F(OldWorkerTest, IsNoSecondOpinionOnAnotherProtocol) {
  server_.Submit(Spec(v1::TIMING_PROTOCOL_MODEL));
  FakeWorker current(&server_, "new");
  const std::vector<v1::Assignment> assignments = current.Lease(1);
  ASSERT_THAT(assignments, SizeIs(1));
  v1::MeasureResult failed = FakeResult(assignments[0]);
  failed.set_status(v1::MEASURE_STATUS_RUN_ERROR);
  failed.clear_verification();
  failed.mutable_timing()->clear_seconds();
  failed.mutable_timing()->clear_samples_seconds();
  EXPECT_TRUE(current.Report(assignments[0], failed).ok());
  EXPECT_EQ(current.answer.kind(), v1::ReportAnswer::KEPT);
}

TEST_F(OldWorkerTest, IsListedWithItsVersion) {
  FakeWorker current(&server_, "new");
  const std::vector<v1::DeviceStatus> devices = server_->workers().Devices();
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].version(), "");
  EXPECT_EQ(devices[1].version(), "0.1.0");
  EXPECT_EQ(devices[0].role(), v1::WORKER_ROLE_BOTH);
}

}  // namespace
}  // namespace mycc
