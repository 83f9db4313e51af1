// Prints foreign records (db/foreign_table.h), for `mycc-tune log list --foreign`.
#pragma once

#include <iosfwd>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/foreign_table.h"
#include "mycc_tune/log_commands.h"

namespace mycc {

absl::Status ListForeignRecords(const LogListArgs& args, const TuningLog& log, std::ostream& out);

void WriteForeignTable(absl::Span<const ForeignRecord> records, std::ostream& out);
// One object on one line: `foreign`, its id; `signer`, `key`, `taken_unix_micros`, `waits`, and the keys of
// an exported record.
void WriteForeignJson(const ForeignRecord& record, std::ostream& out);

}  // namespace mycc
