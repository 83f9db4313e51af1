// The rank of a schedule that is measured again by itself, by `log verify` or a job of listed candidates.
// Used by the classes of db/ that own a transaction. Thread rule: thread-compatible; the caller holds the
// database's mutex.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "db/database.h"
#include "proto/records.pb.h"

namespace mycc {

// Whether a job of listed candidates proposed the record's.
bool IsListedAgain(const v1::Record& record);

// A new time does not compare with one that a final round gave the same trace earlier. So a record of the
// same code takes over the rank of the final round. A record of other code replaces it, and ranks by its own
// time. A record that is not a verified time stays as it is.
absl::Status KeepStandingRank(Database* database, v1::Record* record);
// The same for a record whose key and trace are known otherwise.
absl::Status KeepStandingRank(Database* database, int64_t key, const std::string& stored_trace,
                              v1::Record* record);

}  // namespace mycc
