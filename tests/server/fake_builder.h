// A build-only worker of a FakeServer, which builds without compiling.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "codegen/workload/parse.h"
#include "tests/cuda/any_portable.h"
#include "tests/server/fake_server.h"

namespace mycc {

inline constexpr char kGpuTestTarget[] =
    "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M";

// A job for GPUs.
inline v1::JobSpec GpuSpec(uint32_t trials) {
  v1::JobSpec spec = MakeSpec({kOtherWorkload}, trials);
  spec.set_target(kGpuTestTarget);
  return spec;
}

class FakeBuilder {
 public:
  FakeBuilder(FakeServer* server, std::string name) : server_(server), name_(std::move(name)) { Register(); }

  v1::RegisterRequest Registration() const {
    v1::RegisterRequest request;
    request.set_worker(name_);
    request.set_instance(name_);
    request.set_names_what_it_holds(true);
    request.set_role(v1::WORKER_ROLE_BUILD);
    request.add_build_targets(kGpuTestTarget);
    request.set_builders(2);
    for (const auto& [key, lease] : held) *request.add_held() = lease;
    return request;
  }
  absl::StatusOr<v1::RegisterResponse> TryRegister(const v1::RegisterRequest& request) {
    return AnswerOf<v1::RegisterResponse>(
        server_, [&](const auto& reply) { (*server_)->workers().Register(request, reply); });
  }
  void Register() {
    const absl::StatusOr<v1::RegisterResponse> response = TryRegister(Registration());
    ASSERT_TRUE(response.ok()) << response.status();
    session = response->session();
    for (const v1::LeaseId& lost : response->lost()) held.erase(KeyOf(lost));
  }

  absl::StatusOr<v1::LeaseBuildsResponse> TryLease(uint32_t count) {
    auto request = Named<v1::LeaseBuildsRequest>();
    request.set_max_orders(count);
    return AnswerOf<v1::LeaseBuildsResponse>(server_, [&](const auto& reply) {
      (*server_)->workers().LeaseBuilds(
          request, [] { return true; }, reply);
    });
  }
  std::vector<v1::BuildOrder> Lease(uint32_t count) {
    const absl::StatusOr<v1::LeaseBuildsResponse> response = TryLease(count);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {};
    Apply(response->instructions());
    for (const v1::BuildOrder& order : response->orders()) held[KeyOf(order.lease())] = order.lease();
    return {response->orders().begin(), response->orders().end()};
  }
  absl::Status Beat() {
    const auto response = AnswerOf<v1::HeartbeatResponse>(server_, [this](const auto& reply) {
      (*server_)->workers().Heartbeat(Named<v1::HeartbeatRequest>(), reply);
    });
    if (response.ok()) Apply(response->instructions());
    return response.status();
  }

  static v1::BuildReport Built(const v1::BuildOrder& order) {
    const Workload workload = ParseWorkload(order.workload(), "order").value();
    v1::BuildReport report;
    *report.mutable_lease() = order.lease();
    report.set_status(v1::MEASURE_STATUS_OK);
    report.set_code_digest(Sha256Hex(order.trace()));
    report.set_artifact(
        SerializePortable(AnyPortable(workload, ParseTarget(order.target()).value(), report.code_digest())));
    report.set_build_seconds(1.5);
    return report;
  }
  static v1::BuildReport Failed(const v1::BuildOrder& order,
                                v1::MeasureStatus status = v1::MEASURE_STATUS_BUILD_ERROR) {
    v1::BuildReport report;
    *report.mutable_lease() = order.lease();
    report.set_status(status);
    report.set_error("it does not build");
    return report;
  }
  // The answer of the server.
  v1::ReportAnswer Report(const v1::BuildReport& report) {
    auto request = Named<v1::ReportBuildsRequest>();
    *request.add_reports() = report;
    const auto response = AnswerOf<v1::ReportBuildsResponse>(
        server_, [&](const auto& reply) { (*server_)->workers().ReportBuilds(request, reply); });
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok() || response->answers_size() != 1) return {};
    Apply(response->instructions());
    if (response->answers(0).kind() != v1::ReportAnswer::NOT_NOW) held.erase(KeyOf(report.lease()));
    return response->answers(0);
  }
  // Builds until there are no more orders; returns how many.
  int Work(uint32_t batch = 4) {
    int built = 0;
    while (true) {
      const std::vector<v1::BuildOrder> orders = Lease(batch);
      if (orders.empty()) return built;
      for (const v1::BuildOrder& order : orders) {
        EXPECT_EQ(Report(Built(order)).kind(), v1::ReportAnswer::KEPT);
        ++built;
      }
    }
  }

  using Key = std::pair<std::string, uint32_t>;  // order, attempt
  std::map<Key, v1::LeaseId> held;
  std::string session;
  v1::Instructions instructions;

 private:
  static Key KeyOf(const v1::LeaseId& lease) { return {lease.trial(), lease.attempt()}; }
  void Apply(const v1::Instructions& told) {
    instructions = told;
    for (const v1::LeaseId& lease : told.revoked()) held.erase(KeyOf(lease));
  }
  template <typename Request>
  Request Named() const {
    Request request;
    request.set_session(session);
    for (const auto& [key, lease] : held) *request.add_held() = lease;
    return request;
  }

  FakeServer* const server_;
  const std::string name_;
};

}  // namespace mycc
