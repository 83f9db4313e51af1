#include "mycc_tune/foreign_report.h"

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "command/table.h"
#include "command/times.h"
#include "db/message_json.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr size_t kShownHashDigits = 12;

}  // namespace

absl::Status ListForeignRecords(const LogListArgs& args, const TuningLog& log, std::ostream& out) {
  std::vector<ForeignRecord> records;
  MYCC_RETURN_IF_ERROR(ForEachForeign(log, args.filter, [&](const ForeignRecord& record) {
    if (args.json) {
      WriteForeignJson(record, out);
    } else {
      records.push_back(record);
    }
    return absl::OkStatus();
  }));
  if (!args.json) WriteForeignTable(records, out);
  return absl::OkStatus();
}

void WriteForeignTable(absl::Span<const ForeignRecord> records, std::ostream& out) {
  std::vector<std::vector<std::string>> rows = {
      {"taken in (UTC)", "signed by", "key", "their time", "caches", "workload", "target", ""}};
  for (const ForeignRecord& foreign : records) {
    const v1::Record& record = foreign.record;
    const v1::Timing& timing = record.result().timing();
    rows.push_back({FormatUnixMicros(foreign.taken_unix_micros), Printable(foreign.signer.name),
                    foreign.signer.key_id, FormatSeconds(timing.seconds()), ProtocolName(timing.protocol()),
                    Printable(absl::StrCat(record.workload_name(), " ",
                                           record.workload_hash().substr(0, kShownHashDigits))),
                    record.target(), foreign.waits ? "waits" : "measured here"});
  }
  out << FormatTable(rows, {3});
}

void WriteForeignJson(const ForeignRecord& foreign, std::ostream& out) {
  nlohmann::ordered_json json{{"foreign", foreign.id},
                              {"signer", foreign.signer.name},
                              {"key", foreign.signer.key_id},
                              {"taken_unix_micros", foreign.taken_unix_micros},
                              {"waits", foreign.waits}};
  json.update(MessageToJson(foreign.record));
  out << json << "\n";
}

}  // namespace mycc
