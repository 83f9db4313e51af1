#include "server/build_leasing.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/trace_names.h"

namespace mycc {
namespace {

constexpr uint32_t kMostOrders = 256;    // of a call
constexpr double kMostWaitSeconds = 60;  // of a call
constexpr double kLookAgainSeconds = 0.1;
constexpr char kBuiltBefore[] = "an earlier build";

}  // namespace

void BuildLeasing::Lease(const v1::LeaseBuildsRequest& request, IsAlive alive,
                         Reply<v1::LeaseBuildsResponse> reply) {
  const double wait = std::clamp(request.wait_seconds(), 0.0, kMostWaitSeconds);
  Call call{request, std::move(alive), std::move(reply), time_->Seconds() + wait};
  if (!Answer(call)) waiting_.push_back(std::move(call));
}

void BuildLeasing::Serve() {
  const double now = time_->Seconds();
  if (waiting_.empty() || (queue_->additions() == additions_seen_ && now < look_at_)) return;
  additions_seen_ = queue_->additions();
  look_at_ = now + kLookAgainSeconds;
  waiting_.remove_if([this](const Call& call) { return Answer(call); });
}

void BuildLeasing::RefuseWaiting(const absl::Status& status) {
  for (const Call& call : waiting_) call.reply(status);
  waiting_.clear();
}

bool BuildLeasing::Answer(const Call& call) {
  WorkerTable::Session* const session = workers_->Find(call.request.session());
  if (session == nullptr) {
    call.reply(UnknownSession(call.request.session()));
    return true;
  }
  if (!call.alive()) {
    call.reply(absl::CancelledError("the worker hung up"));
    return true;
  }
  if (!session->builder) {
    call.reply(absl::FailedPreconditionError(absl::StrCat(
        "worker ", session->worker, " asks for builds; expected it to register with role build")));
    return true;
  }
  session->builder->asked = time_->Seconds();
  v1::LeaseBuildsResponse response;
  for (v1::BuildOrder& order :
       Orders(session, static_cast<int>(std::min(call.request.max_orders(), kMostOrders))))
    *response.add_orders() = std::move(order);
  if (response.orders().empty() && session->revoked.empty() && time_->Seconds() < call.until) return false;
  *response.mutable_instructions() = workers_->TakeInstructions(session);
  call.reply(std::move(response));
  return true;
}

std::vector<v1::BuildOrder> BuildLeasing::Orders(WorkerTable::Session* session, int count) {
  const double now = time_->Seconds();
  const auto is_leasable = [this](const std::string& job) { return board_->Leasable(job) != nullptr; };
  if (queue_->waiting() == 0) return {};
  count =
      std::min(session->builder->builds.Allowance(count, now), session->builder->code.Allowance(count, now));
  std::vector<v1::BuildOrder> orders;
  while (static_cast<int>(orders.size()) < count) {
    const std::vector<Grant> grants =
        queue_->Lease(*session, count - static_cast<int>(orders.size()), is_leasable, now);
    if (grants.empty()) break;
    for (const Grant& grant : grants) {
      const PlannedTask& task = board_->Leasable(grant.work.job)->plan().tasks[grant.work.task];
      v1::BuildOrder order;
      order.set_workload(task.key.workload);
      order.set_target(task.key.target);
      order.set_trace(StoredTrace(std::get<TrialWork>(grant.work.what).trace));
      if (!store_->Find(ArtifactStore::CandidateOf(order.workload(), order.target(), order.trace()))
               .empty()) {
        queue_->Built(grant, kBuiltBefore);
        continue;
      }
      order.mutable_lease()->set_trial(grant.work.name);
      order.mutable_lease()->set_attempt(grant.work.attempt);
      order.mutable_lease()->set_ticket(tickets_->TicketOf(grant.work.name, grant.work.attempt));
      orders.push_back(std::move(order));
    }
  }
  return orders;
}

}  // namespace mycc
