// A build-only worker's calls, as its server gets them.
#include "worker/build_link.h"

#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A server that keeps what it is told, and answers as it is told to.
class TellingServer final : public ServerLink {
 public:
  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override {
    registered = request;
    return v1::RegisterResponse();
  }
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest&) override {
    return absl::InternalError("a builder leases no trials");
  }
  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest&) override {
    return absl::InternalError("a builder reports no trials");
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest&) override {
    return v1::HeartbeatResponse();
  }
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest&) override { return v1::LeaveResponse(); }
  absl::StatusOr<v1::LeaseBuildsResponse> LeaseBuilds(const v1::LeaseBuildsRequest& request) override {
    asked = request;
    return orders;
  }
  absl::StatusOr<v1::ReportBuildsResponse> ReportBuilds(const v1::ReportBuildsRequest& request) override {
    reports.push_back(request);
    if (!errors.empty()) {
      const absl::Status error = errors.front();
      errors.pop_front();
      if (!error.ok()) return error;
    }
    v1::ReportBuildsResponse response;
    for (const v1::BuildReport& report : request.reports()) {
      v1::ReportAnswer& answer = *response.add_answers();
      *answer.mutable_lease() = report.lease();
      answer.set_kind(kind);
    }
    return response;
  }
  void StopWaiting() override {}

  v1::RegisterRequest registered;
  v1::LeaseBuildsRequest asked;
  v1::LeaseBuildsResponse orders;
  std::vector<v1::ReportBuildsRequest> reports;
  std::deque<absl::Status> errors;  // of the next reports
  v1::ReportAnswer::Kind kind = v1::ReportAnswer::KEPT;
};

class BuildLinkTest : public ::testing::Test {
 protected:
  static v1::LeaseId LeaseOf(const std::string& trial) {
    v1::LeaseId lease;
    lease.set_trial(trial);
    lease.set_attempt(1);
    return lease;
  }
  static v1::ReportRequest ReportsOf(const std::vector<std::string>& trials) {
    v1::ReportRequest request;
    request.set_session("s");
    for (const std::string& trial : trials) {
      v1::Report& report = *request.add_reports();
      *report.mutable_lease() = LeaseOf(trial);
      report.mutable_result()->set_status(v1::MEASURE_STATUS_OK);
      report.mutable_result()->set_code_digest("digest of " + trial);
      report.mutable_result()->mutable_timing()->set_build_seconds(1.5);
    }
    return request;
  }

  TellingServer server_;
  BuildLink link_{&server_, {"v1 cuda arch=sm_90a"}, 7};
};

TEST_F(BuildLinkTest, RegistersWithTargetsInPlaceOfDevices) {
  v1::RegisterRequest request;
  request.set_worker("builder");
  request.add_devices()->set_device("build");
  ASSERT_TRUE(link_.Register(request).ok());
  EXPECT_EQ(server_.registered.worker(), "builder");
  EXPECT_EQ(server_.registered.role(), v1::WORKER_ROLE_BUILD);
  EXPECT_THAT(server_.registered.devices(), IsEmpty());
  EXPECT_THAT(server_.registered.build_targets(), ElementsAre("v1 cuda arch=sm_90a"));
  EXPECT_EQ(server_.registered.builders(), 7u);
}

TEST_F(BuildLinkTest, OrdersAreAssignments) {
  v1::BuildOrder& order = *server_.orders.add_orders();
  *order.mutable_lease() = LeaseOf("build t");
  order.set_workload("w");
  order.set_target("v1 cuda");
  order.set_trace("steps");
  v1::LeaseRequest request;
  request.set_max_trials(3);
  request.set_wait_seconds(20);
  *request.add_held() = LeaseOf("build other");
  const v1::LeaseResponse leased = link_.Lease(request).value();
  EXPECT_EQ(server_.asked.max_orders(), 3u);
  EXPECT_EQ(server_.asked.wait_seconds(), 20);
  EXPECT_THAT(server_.asked.held(), SizeIs(1));
  ASSERT_THAT(leased.assignments(), SizeIs(1));
  EXPECT_EQ(leased.assignments(0).lease().trial(), "build t");
  EXPECT_EQ(leased.assignments(0).trace(), "steps");
}

TEST_F(BuildLinkTest, AReportCarriesWhatIsAttachedUntilItIsAnswered) {
  link_.Attach(LeaseOf("t"), "bytes");
  server_.errors = {absl::UnavailableError("away")};
  EXPECT_TRUE(absl::IsUnavailable(link_.Report(ReportsOf({"t"})).status()));
  server_.kind = v1::ReportAnswer::NOT_NOW;
  EXPECT_TRUE(link_.Report(ReportsOf({"t"})).ok());
  server_.kind = v1::ReportAnswer::KEPT;
  EXPECT_TRUE(link_.Report(ReportsOf({"t"})).ok());
  ASSERT_THAT(server_.reports, SizeIs(3));
  for (const v1::ReportBuildsRequest& request : server_.reports) {
    EXPECT_EQ(request.reports(0).artifact(), "bytes");
    EXPECT_EQ(request.reports(0).code_digest(), "digest of t");
    EXPECT_EQ(request.reports(0).build_seconds(), 1.5);
  }
  EXPECT_TRUE(link_.Report(ReportsOf({"t"})).ok());
  EXPECT_EQ(server_.reports.back().reports(0).artifact(), "") << "it was kept";
}

TEST_F(BuildLinkTest, LargeReportsGoInSeveralMessages) {
  for (const char* trial : {"a", "b", "c"}) link_.Attach(LeaseOf(trial), std::string(5 << 20, 'x'));
  server_.errors = {absl::OkStatus(), absl::ResourceExhaustedError("full")};
  const auto answered = link_.Report(ReportsOf({"a", "b", "c"}));
  ASSERT_TRUE(answered.ok()) << "some were answered";
  EXPECT_THAT(server_.reports, SizeIs(2));
  EXPECT_THAT(answered->answers(), SizeIs(2)) << "the third comes again";
}

}  // namespace
}  // namespace mycc
