// The commands of `mycc-tune log ...`, without their command lines: each opens the log, does its work, and
// prints the result to `out`. Errors name the file and what was expected.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/log_gc.h"
#include "db/record_filter.h"
#include "db/schema.h"
#include "mycc_tune/default_log.h"
#include "proto/records.pb.h"

namespace mycc {

struct LogStatsArgs {
  std::string log = kDefaultLog;
  bool json = false;
};
absl::Status LogStatsCommand(const LogStatsArgs& args, std::ostream& out);

struct LogListArgs {
  std::string log = kDefaultLog;
  RecordFilter filter;
  bool foreign = false;  // the records of others, in place of the log's own
  bool json = false;     // JSON lines
};
absl::Status LogListCommand(const LogListArgs& args, std::ostream& out);

struct LogShowArgs {
  std::string log = kDefaultLog;
  std::string record;  // an id, a trial's name, or a job's id
  bool json = false;
};
absl::Status LogShowCommand(const LogShowArgs& args, std::ostream& out);

struct LogExportArgs {
  std::string log = kDefaultLog;
  RecordFilter filter;
  std::string format = "jsonl";  // or "t4"
  // A file (base/output_file.h); the standard output or empty: `out` gets the data and nothing else.
  std::string output;
  std::string sign;    // a private key's file: the export is a signed pack (db/record_pack.h)
  std::string signer;  // its owner's name in the pack; empty: the user of this process
};
absl::Status LogExportCommand(const LogExportArgs& args, std::ostream& out);

struct LogImportArgs {
  std::string log = kDefaultLog;    // made if there is none, and kept if something was added
  std::vector<std::string> inputs;  // JSON lines
  std::string verify;               // a file of public keys: the inputs are packs that one of them has signed
};
absl::Status LogImportCommand(const LogImportArgs& args, std::ostream& out);

struct LogMergeArgs {
  std::string log = kDefaultLog;    // made if there is none
  std::vector<std::string> inputs;  // other logs
};
absl::Status LogMergeCommand(const LogMergeArgs& args, std::ostream& out);

// Measures a record's candidate again, on a worker. FailedPrecondition: this machine cannot run its target.
using Remeasure = std::function<absl::StatusOr<v1::MeasureResult>(const v1::Record&)>;
struct LogVerifyArgs {
  std::string log = kDefaultLog;
  RecordFilter filter;  // which records' keys; empty: all
};
// Measures the best record of each key and protocol again and keeps the results, which then speak for their
// traces: a stale record becomes fresh, a wrong one is no longer offered, and the next best takes its turn. A
// crash is kept only where another kernel of the target has run here, since a broken machine crashes them
// all. FailedPrecondition at the end when some were not confirmed; records for other machines are left alone.
// NotFound when there is nothing to measure.
absl::Status LogVerifyCommand(const LogVerifyArgs& args, const Remeasure& remeasure, std::ostream& out);

struct LogOverrideArgs {
  std::string log = kDefaultLog;
  std::string record;  // an id, or a trial's name
  OverrideKind kind = OverrideKind::kPin;
  std::string reason;  // must be given, unless `clear`
  bool clear = false;  // takes the pin or ban back
};
absl::Status LogOverrideCommand(const LogOverrideArgs& args, std::ostream& out);

struct LogBackupArgs {
  std::string log = kDefaultLog;
  std::string output;  // a new file
};
absl::Status LogBackupCommand(const LogBackupArgs& args, std::ostream& out);

struct LogGcArgs {
  std::string log = kDefaultLog;
  GcPolicy policy;
};
absl::Status LogGcCommand(const LogGcArgs& args, std::ostream& out);

}  // namespace mycc
