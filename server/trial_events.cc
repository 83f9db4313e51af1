#include "server/trial_events.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/names.h"

namespace mycc {

Event WorkerEvent(const char* name, const std::string& worker, bool is_warning) {
  Event event(name, "");
  event.is_warning = is_warning;
  event.worker = worker;
  return event;
}

Event LeaseEvent(const char* name, const v1::LeaseId& lease, const std::string& worker,
                 const std::string& device) {
  Event event(name, "");
  event.trial = lease.trial();
  event.job = lease.trial().substr(0, lease.trial().find('/'));  // of a trial and of a final round
  event.attempt = lease.attempt();
  event.worker = worker;
  event.device = device;
  return event;
}

Event ResultEvent(const char* name, const v1::LeaseId& lease, const std::string& worker,
                  const std::string& device, const v1::MeasureResult& result) {
  Event event = LeaseEvent(name, lease, worker, device);
  event.status = StatusName(result.status());
  event.seconds = result.timing().seconds();
  return event;
}

Event RefusalEvent(const std::string& worker, const std::string& what, int64_t count) {
  Event event("report.refused", absl::StrCat("worker ", worker, ": refused ", what, " (", count, " in all)"));
  event.is_warning = true;
  event.worker = worker;
  return event;
}

Reply<v1::LeaseResponse> TellingLeases(const EventLog& log, const std::string& worker,
                                       const std::string& device, Reply<v1::LeaseResponse> reply) {
  if (!log) return reply;
  return [log, worker, device, reply = std::move(reply)](absl::StatusOr<v1::LeaseResponse> response) {
    if (response.ok()) {
      for (const v1::Assignment& assignment : response->assignments())
        log(LeaseEvent("trial.leased", assignment.lease(), worker, device));
    }
    reply(std::move(response));
  };
}

}  // namespace mycc
