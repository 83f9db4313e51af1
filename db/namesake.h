// Keeps different results that have the same trial name. Such logs exist: older builds made job ids from the
// submission, so one command on two hosts gave its trials the same names. When such logs are merged, the
// result whose content has the smallest digest keeps the name, and the others get names that end with their
// digest (proto/names.h). So a record's name follows from the log's content, not from the order of merging,
// and merging again adds nothing. For record_table. Thread rule: thread-compatible; the caller holds the
// database's mutex.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "proto/records.pb.h"

namespace mycc {

// 16 hexadecimal digits of the SHA-256 of a record's content, without its name and its log's
// stamp.
std::string ContentDigest(const v1::Record& record);

struct PlaceOfRecord {
  int64_t known_id = 0;        // of the record that the log holds already; 0: it holds none of this content
  std::string trial;           // else: the name to keep it under
  bool has_namesakes = false;  // the log holds other contents of the name
};
// Whether the log holds a record that was made under this name, of whatever content.
absl::StatusOr<bool> HasNameOf(Database* database, const std::string& trial);
// Renames another record where the new record's digest is the smallest. REQUIRES: a
// transaction.
absl::StatusOr<PlaceOfRecord> FindPlace(Database* database, const v1::Record& record);

}  // namespace mycc
