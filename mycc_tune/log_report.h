// Prints a log's records as tables for people or JSON for programs. Dates are UTC.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/types/span.h"
#include "db/log_stats.h"
#include "db/record_table.h"

namespace mycc {

void WriteStatsText(const std::string& path, const LogStats& stats, std::ostream& out);
void WriteStatsJson(const std::string& path, const LogStats& stats, std::ostream& out);  // one object

// TIME is what was measured, RANKS BY what compares with the others: after a final round the two differ.
void WriteRecordTable(absl::Span<const StoredRecord> records, std::ostream& out);
// Everything about a record: what it is, how it was measured, and the texts to paste: trace, reproduction.
void WriteRecordText(const StoredRecord& record, std::ostream& out);
// One object on one line: the keys of an exported record (json_lines.h), and "id", "superseded", "pinned",
// "banned".
void WriteRecordJson(const StoredRecord& record, std::ostream& out);

}  // namespace mycc
