// The doctor's checks of GPUs, on GPUs that the tests describe.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/doctor/fake_host.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto GpuIs(Verdict verdict, const std::string& words) {
  return AllOf(Field(&Finding::verdict, verdict), Field(&Finding::found, HasSubstr(words)));
}

class GpuChecksTest : public ::testing::Test {
 protected:
  FakeHost host_;
  Installation& installation_ = host_.installation;
};

TEST_F(GpuChecksTest, HealthyGpu) {
  EXPECT_THAT(CheckDriver(installation_),
              ElementsAre(GpuIs(Verdict::kOk, "cuda:0: 580.95.05 for CUDA 13.0")));
  EXPECT_THAT(CheckGpus(installation_), ElementsAre(GpuIs(Verdict::kOk, "NVIDIA H200, nothing unusual")));
  EXPECT_THAT(CheckNvrtc(installation_), ElementsAre(GpuIs(Verdict::kOk, "nvrtc-13.0")));
}

TEST_F(GpuChecksTest, HostWithoutGpus) {
  installation_.system.count_gpus = [] { return absl::NotFoundError("no driver"); };
  for (const Check check : {CheckDriver, CheckNvrtc, CheckGpus, CheckXids})
    EXPECT_THAT(check(installation_), IsEmpty());
}

TEST_F(GpuChecksTest, NamedGpuThatIsMissing) {
  installation_.devices = {"cuda:3"};
  installation_.system.gpu = [](int ordinal) -> absl::StatusOr<GpuState> {
    return absl::NotFoundError(ordinal == 3 ? "there is 1 GPU" : "another one was asked for");
  };
  EXPECT_THAT(CheckDriver(installation_), ElementsAre(GpuIs(Verdict::kFault, "cuda:3: there is 1 GPU")));
  EXPECT_THAT(CheckGpus(installation_), IsEmpty());
}

TEST_F(GpuChecksTest, WrongNameIsAFault) {
  installation_.devices = {"cuda:first"};
  EXPECT_THAT(CheckDriver(installation_), ElementsAre(GpuIs(Verdict::kFault, "no device cuda:first")));
}

TEST_F(GpuChecksTest, OldDriver) {
  host_.gpu.cuda = 12040;
  EXPECT_THAT(CheckDriver(installation_), ElementsAre(GpuIs(Verdict::kFault, "CUDA 12.4; expected 13.0")));
}

TEST_F(GpuChecksTest, WithoutNvml) {
  host_.gpu.driver.clear();
  EXPECT_THAT(CheckDriver(installation_), ElementsAre(GpuIs(Verdict::kWarning, "NVML is missing")));
}

TEST_F(GpuChecksTest, WithoutNvrtc) {
  installation_.system.gpu_compiler = [] { return absl::NotFoundError("no libnvrtc.so.13"); };
  EXPECT_THAT(CheckNvrtc(installation_), ElementsAre(GpuIs(Verdict::kFault, "no libnvrtc.so.13")));
}

TEST_F(GpuChecksTest, Settings) {
  host_.gpu.is_persistent = false;
  host_.gpu.computes_for_one_alone = true;
  host_.gpu.sm_mhz = 1500;
  host_.gpu.most_sm_mhz = 1980;
  EXPECT_THAT(
      CheckGpus(installation_),
      ElementsAre(GpuIs(Verdict::kWarning, "persistence mode is off"), GpuIs(Verdict::kFault, "compute mode"),
                  GpuIs(Verdict::kOk, "application clock 1500 of 1980 MHz")));
}

TEST_F(GpuChecksTest, Health) {
  host_.gpu.slowed_by = {"power cap", "hardware thermal"};
  host_.gpu.celsius = 91;
  host_.gpu.processes = 3;
  host_.gpu.has_pending_page = true;
  host_.gpu.uncorrected_errors = 2;
  EXPECT_THAT(CheckGpus(installation_),
              ElementsAre(GpuIs(Verdict::kWarning, "slowed by power cap, hardware thermal"),
                          GpuIs(Verdict::kWarning, "91 degrees"), GpuIs(Verdict::kWarning, "3 processes"),
                          GpuIs(Verdict::kFault, "damaged page"), GpuIs(Verdict::kFault, "2 errors")));
}

TEST_F(GpuChecksTest, WorkersOwnProcessesAreNoTrouble) {
  host_.gpu.processes = 2;
  EXPECT_THAT(CheckGpus(installation_), ElementsAre(GpuIs(Verdict::kOk, "nothing unusual")));
}

TEST_F(GpuChecksTest, XidInTheKernelsMessages) {
  EXPECT_THAT(CheckXids(installation_), ElementsAre(GpuIs(Verdict::kOk, "no Xid")));
  host_.Write("/dev/kmsg", "4,9,9,-;NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.");
  EXPECT_THAT(
      CheckXids(installation_),
      ElementsAre(GpuIs(Verdict::kWarning, "1 since the host's start, the last one: NVRM: Xid (PCI")));
}

}  // namespace
}  // namespace mycc
