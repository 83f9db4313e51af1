// `mycc-tune upgrade-check`: says of how many best records this build makes other code than was measured, so
// that an upgrade measures these again, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/record_filter.h"
#include "db/tuning_log.h"
#include "mycc_tune/code_child.h"
#include "mycc_tune/default_log.h"
#include "proto/tuning.pb.h"

namespace mycc {

struct UpgradeCheckArgs {
  std::string log = kDefaultLog;
  RecordFilter filter;  // only its workload, target and protocol are looked at
  int top = 1;          // records of each workload, target and protocol
  bool json = false;
};

// The codes of records, in their order.
using CodesOf = std::function<std::vector<CodeNow>(const std::vector<StoredRecord>& records)>;
// By processes beside each other, as many as this process has CPUs.
CodesOf CodesInProcesses();

struct CodeCounts {
  int64_t same = 0;
  int64_t changed = 0;
  int64_t gone = 0;     // the trace no longer replays
  int64_t unknown = 0;  // this host cannot tell

  int64_t all() const { return same + changed + gone + unknown; }
  void Add(const CodeCounts& other);
};
// A record from whose trace this build makes other code, or none.
struct ChangedRecord {
  int64_t id = 0;
  bool is_gone = false;
  std::string why;  // of one that is gone
};
struct UpgradeReport {
  // By target, workload name and hash.
  std::map<std::tuple<std::string, std::string, std::string>, CodeCounts> keys;
  std::vector<ChangedRecord> changed;
  std::string why_unknown;  // of the first one
};

// Reads the best records page by page, and holds no more of them.
absl::StatusOr<UpgradeReport> CheckUpgrade(const TuningLog& log, const UpgradeCheckArgs& args,
                                           const CodesOf& codes_of);

// The changed records as jobs that measure exactly them again, by protocol; none is larger than a message.
absl::StatusOr<std::vector<v1::JobSpec>> JobsOfChanged(const TuningLog& log, const UpgradeReport& report);

void WriteUpgradeReport(const UpgradeCheckArgs& args, const UpgradeReport& report, std::ostream& out);

}  // namespace mycc
