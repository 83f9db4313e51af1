// Marks the results of a trace that a newer result supersedes. Used by the classes of db/ that own a
// transaction. Thread rule: thread-compatible; the caller holds the database's mutex.
//
// The newer result is the one with the later stamp of the log (`recorded`), whatever a worker's clock
// said; equal stamps, which only merged logs hold, are ordered by the trial's name. A verified OK
// record is superseded by a newer verified OK record of the same trace, protocol and timer, and by a
// newer wrong result or crash of the same trace under any protocol. So a trace measured twice ranks
// once, with its latest time, and a trace that was found wrong ranks no more. Two exceptions: a time
// from a final round is superseded by a later round only, since single timings come from other
// moments; and a proven record is not superseded by an unproven one, which could not be served.
//
// The superseded records are a function of the records in the log, not of the order in which they
// came.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "db/database.h"

namespace mycc {

// Marks the records that are superseded since a record of this trace was added, the new one included.
// REQUIRES: a transaction.
absl::Status Supersede(Database* database, int64_t key, const std::string& trace_hash);

}  // namespace mycc
