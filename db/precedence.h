// Which of a trace's results speaks for it. For the classes of db/ that own a transaction. Thread rule:
// thread-compatible; the caller holds the database's mutex.
//
// The newest one does. Newer is what the log has stamped later (`recorded`), whatever a worker's clock said;
// of equal stamps, which only logs of different servers can hold, the greater name. A verified OK record is
// superseded by a newer verified OK record of the same trace under the same protocol and timer, and by a
// newer wrong result or crash of the same trace under any. So a trace measured twice ranks once, with its
// latest time, and one that was found wrong no longer ranks. A time with a rank of its own, from a final
// round, is not superseded by one without, which was taken at another moment: it stands until the next round.
// One that is proven is not superseded by one that is not, which could not be served in its place.
//
// Which records are superseded is a function of the records that the log holds, not of the order in which
// they came.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "db/database.h"

namespace mycc {

// Marks what has been superseded since a record of this trace was added, the new record itself included.
// REQUIRES: a transaction.
absl::Status Supersede(Database* database, int64_t key, const std::string& trace_hash);

}  // namespace mycc
