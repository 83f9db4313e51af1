// `mycc-tune best`: shows the best records of a file's workloads, from a log or a server.
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "command/misuse.h"
#include "command/model.h"
#include "command/sources.h"
#include "db/tuning_log.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/log_report.h"
#include "mycc_tune/tuning_client.h"
#include "proto/names.h"
#include "proto/timing_protocol.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using Lookup = std::function<absl::StatusOr<std::vector<StoredRecord>>(const v1::BestRequest&)>;

absl::StatusOr<Lookup> OpenLookup(const BestOptions& options) {
  if (!options.server) {
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<TuningLog> opened, TuningLog::Open(options.log, OpenMode::kRead));
    std::shared_ptr<TuningLog> log = std::move(opened);
    log->OnDamage([](int64_t, const absl::Status& why) {
      std::cerr << "mycc-tune: " << why.message() << "; it is passed over\n";
    });
    return Lookup([log](const v1::BestRequest& request) {
      return log->TopK({request.workload_hash(), request.target()}, request.protocol(),
                       static_cast<int>(request.top()));
    });
  }
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<TuningClient> connected, TuningClient::Connect(*options.server));
  std::shared_ptr<TuningClient> client = std::move(connected);
  return Lookup([client](const v1::BestRequest& request) -> absl::StatusOr<std::vector<StoredRecord>> {
    MYCC_ASSIGN_OR_RETURN(const v1::BestResponse best, client->Best(request));
    std::vector<StoredRecord> stored;
    for (int i = 0; i < std::min(best.records_size(), best.ids_size()); ++i) {
      stored.push_back({.id = best.ids(i), .record = best.records(i)});
    }
    return stored;
  });
}

}  // namespace

absl::Status BestCommand(const BestOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
  MYCC_ASSIGN_OR_RETURN(const Tasks tasks, ReadTasks(options.model, target));
  MYCC_ASSIGN_OR_RETURN(const v1::TimingProtocol asked, ReadProtocol(options.cache));
  MYCC_ASSIGN_OR_RETURN(const Lookup look_up, OpenLookup(options));
  const KernelUse use = IsModel(options.model.file) ? KernelUse::kInModel : KernelUse::kAlone;
  std::vector<std::string> missing;
  std::vector<StoredRecord> found;
  for (const Workload& workload : tasks.workloads) {
    v1::BestRequest request;
    request.set_workload_hash(WorkloadHash(workload));
    request.set_target(PrintTarget(target));
    request.set_top(options.top);
    std::vector<StoredRecord> records;
    for (const v1::TimingProtocol protocol : ProtocolsOf(target, asked, use)) {
      request.set_protocol(protocol);
      MYCC_ASSIGN_OR_RETURN(records, look_up(request));
      if (!records.empty()) break;
    }
    if (records.empty()) missing.push_back(workload.name);
    found.insert(found.end(), records.begin(), records.end());
  }
  if (options.json) {
    for (const StoredRecord& record : found) WriteRecordJson(record, out);
  } else {
    WriteRecordTable(found, out);
    // With one record for each workload, people often want its trace.
    if (found.size() == 1) out << "\n" << Printable(found[0].record.trace());
    for (const std::string& name : missing)
      out << name << ": no verified record for " << PrintTarget(target) << "\n";
  }
  if (found.empty())
    return absl::NotFoundError(absl::StrCat("no verified record for any workload of ", options.model.file));
  return absl::OkStatus();
}

}  // namespace mycc
