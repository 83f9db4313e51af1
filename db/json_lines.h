// Writes and reads a log as JSON lines. An export holds everything that another log needs to import it. Each
// line is one object; the first gives the format's version:
//
//   {"mycc_tuning_log":1}
//     The format's version; may appear again, so that files can be joined.
//   {"record":{"trial":...,"workload":...,"target":...,...}}
//     Keys are the fields of Record in proto/records.proto.
//   {"pin":{"trial":...,"reason":...,"made_unix_micros":...}}
//     A pinned trace, by a trial that measured it; after its record.
//   {"ban":{"trial":...,"reason":...,"made_unix_micros":...}}
//     A banned one.
//
// Traces have the first names of primitives, as in the log (trace_names.h), so that older versions read them.
// Numbers that JSON lacks are "inf", "-inf" and "nan"; fields at their defaults are left out
// (message_json.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/json_record.h"
#include "db/record_filter.h"
#include "db/tuning_log.h"

namespace mycc {

struct TransferCounts {
  int64_t added = 0;
  int64_t known = 0;      // records that the log held already
  int64_t namesakes = 0;  // of those added: results whose trial's name other results had (namesake.h)
  int64_t overrides = 0;  // pins and bans that took effect
  int64_t foreign = 0;    // foreign records of another log that were new (foreign_table.h)
};

// Writes the records of the filter, each followed by the pin or ban that was given for it. Returns how many
// records there were.
absl::StatusOr<int64_t> ExportJsonLines(const TuningLog& log, const RecordFilter& filter, std::ostream& out);

// Adds what the lines hold, all or nothing. InvalidArgument "ORIGIN:LINE: what is wrong; what was expected",
// also for a time that does not fit its samples or its interval, and for a signed pack (record_pack.h).
absl::StatusOr<TransferCounts> ImportJsonLines(std::istream& in, const std::string& origin, TuningLog* log,
                                               const CheckTarget& check_target = nullptr);

// Adds everything another log holds, all or nothing.
absl::StatusOr<TransferCounts> MergeLog(const TuningLog& from, TuningLog* into);

}  // namespace mycc
