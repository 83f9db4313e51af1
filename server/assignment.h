// The assignment that a worker gets for a grant. Pure functions.
#pragma once

#include "proto/worker.pb.h"
#include "server/active_job.h"
#include "server/lease_queue.h"

namespace mycc {

v1::LeaseId LeaseOf(const Grant& grant);
v1::Assignment AssignmentOf(const Grant& grant, const ActiveJob& job);

}  // namespace mycc
