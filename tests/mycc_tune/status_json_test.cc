// Jobs, devices and best records as JSON: the keys are an interface, which golden files hold.
#include "mycc_tune/status_json.h"

#include <sstream>

#include "gtest/gtest.h"
#include "mycc_tune/log_report.h"
#include "tests/db/test_log.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

v1::JobProgress FullJob() {
  v1::JobProgress job;
  job.set_job("j0123456789abcdef0123456789abcdef");
  job.set_name("resnet50");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_message("waiting for a worker that can measure");
  job.set_target("v1 cuda arch=sm_90a");
  job.set_protocol(v1::TIMING_PROTOCOL_COLD);
  job.set_revision(7);
  job.set_elapsed_seconds(61.5);
  job.set_budget_seconds(600);
  job.set_trials(64);
  job.set_trials_planned(128);
  job.add_tasks()->set_workload_name("conv");
  job.set_created_unix_micros(1767225600000000);
  job.set_trouble("no space");
  job.set_waiters(2);
  job.set_is_model(true);
  job.set_tasks_timed(3);
  job.set_latency_seconds(0.00321);
  job.set_default_latency_seconds(0.0051);
  job.set_owner("ann@host");
  job.set_priority(-3);
  job.set_deadline_unix_micros(1767232800000000);
  job.set_only_when_idle(true);
  job.set_device_seconds(48.25);
  v1::JobProgress::Refusal& refusal = *job.add_refusals();
  refusal.set_reason("# accumulators of 16");
  refusal.set_points(14);
  return job;
}

v1::DeviceStatus FullDevice() {
  v1::DeviceStatus device;
  device.set_worker("gpu1");
  device.set_device("cuda:0");
  device.set_target("v1 cuda arch=sm_90a");
  *device.mutable_info() = MakeRecord({}).result().device();
  device.mutable_toolchain()->set_mycc("0.2");
  device.set_state("busy");
  device.set_reason("draining");
  device.set_leases(2);
  device.set_trials(900);
  device.set_baseline_ratio(1.02);
  device.set_silent_seconds(0.5);
  device.set_refused(1);
  device.set_trouble("too hot");
  device.mutable_reading()->set_device("cuda:0");
  device.mutable_reading()->set_temperature_celsius(71);
  device.mutable_reading()->set_throttle("power cap");
  device.set_role(v1::WORKER_ROLE_MEASURE);
  device.set_version("0.2.1");
  device.set_owner("bob");
  device.set_builds(5);
  return device;
}

// One that says everything, and one that says nothing: both have all keys.
TEST(StatusJsonTest, Jobs) {
  EXPECT_TRUE(MatchesGolden("json/jobs", JobLine(FullJob()) + "\n" + JobLine({}) + "\n"));
}

TEST(StatusJsonTest, Devices) {
  EXPECT_TRUE(MatchesGolden("json/devices", DeviceLine(FullDevice()) + "\n" + DeviceLine({}) + "\n"));
}

TEST(StatusJsonTest, BestRecords) {
  StoredRecord plain{.id = 12, .record = MakeRecord({.launches = 40, .strained_launches = 20})};
  StoredRecord pinned = plain;
  pinned.id = 13;
  pinned.override_by = Override{.kind = OverrideKind::kPin, .reason = "steady under load"};
  std::ostringstream out;
  WriteRecordJson(plain, out);
  WriteRecordJson(pinned, out);
  EXPECT_TRUE(MatchesGolden("json/best", out.str()));
}

}  // namespace
}  // namespace mycc
