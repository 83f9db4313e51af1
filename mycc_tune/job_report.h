// `mycc-tune log report`: one HTML file with all that the log says about a job. It opens without a network:
// its script, its style and its data are inside it. Thread rule: re-entrant; the log is only read.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "mycc_tune/default_log.h"

namespace mycc {

struct LogReportArgs {
  std::string log = kDefaultLog;
  std::string job;  // its id; empty: the newest with results
  // A file (base/output_file.h); - or /dev/stdout: `out` gets the report. Empty: report.html, or with `json`
  // as -.
  std::string output;
  bool json = false;  // the data alone, without the page around it
};
absl::Status LogReportCommand(const LogReportArgs& args, std::ostream& out);

// The report's data: a function of the log's contents. NotFound when there is no such job,
// FailedPrecondition when it has no result yet.
absl::StatusOr<nlohmann::ordered_json> ReportData(TuningLog* log, const std::string& job);

// The page with this data in it. Its texts stay data, scripts in them too.
std::string ReportPage(const nlohmann::ordered_json& data);

}  // namespace mycc
