// Events of leases, results and workers (base/event.h), for logs that programs read. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/event.h"
#include "proto/worker.pb.h"
#include "server/reply.h"

namespace mycc {

// Something that happened to a worker; it has no text for people.
Event WorkerEvent(const char* name, const std::string& worker, bool is_warning = false);
// Something that happened to a worker's lease of a trial, or of a final round.
Event LeaseEvent(const char* name, const v1::LeaseId& lease, const std::string& worker,
                 const std::string& device);
// The same with what the worker reports.
Event ResultEvent(const char* name, const v1::LeaseId& lease, const std::string& worker,
                  const std::string& device, const v1::MeasureResult& result);
// A statement of a worker was refused, for the `count`th time.
Event RefusalEvent(const std::string& worker, const std::string& what, int64_t count);

// A reply that tells `log` of the trials that it gives a worker's device.
Reply<v1::LeaseResponse> TellingLeases(const EventLog& log, const std::string& worker,
                                       const std::string& device, Reply<v1::LeaseResponse> reply);

}  // namespace mycc
