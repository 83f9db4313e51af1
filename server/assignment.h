// Makes the message that tells a worker what to measure, from a granted lease. Pure functions.
#pragma once

#include <cstdint>

#include "proto/names.h"
#include "proto/worker.pb.h"
#include "server/job_ledger.h"
#include "server/lease_queue.h"

namespace mycc {

// The seed of the random inputs that a trial is verified on.
uint64_t InputSeed(uint64_t job_seed, const TrialId& id);
v1::LeaseId LeaseOf(const Grant& grant);
v1::Assignment AssignmentOf(const Grant& grant, const JobLedger& ledger);

}  // namespace mycc
