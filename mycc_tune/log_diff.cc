#include "mycc_tune/log_diff.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "command/table.h"
#include "command/times.h"
#include "db/log_diff.h"
#include "db/message_json.h"
#include "mycc_tune/left_out.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

constexpr size_t kHashDigits = 12;

using Counts = std::map<Change, int64_t>;

// A row of the table, ordered as people want to read it: what became slower first.
struct DiffRow {
  Change change;
  double ratio;
  std::vector<std::string> cells;
};

int PlaceOf(Change change) {
  switch (change) {
    case Change::kSlower: return 0;
    case Change::kFaster: return 1;
    case Change::kTie: return 2;
    case Change::kOtherTimer: return 3;
    case Change::kOnlyFirst: return 4;
    case Change::kOnlySecond: return 5;
    case Change::kSame: return 6;
  }
  return 7;
}

std::string Words(Change change) {
  switch (change) {
    case Change::kOtherTimer: return "other timer";
    case Change::kOnlyFirst: return "only in A";
    case Change::kOnlySecond: return "only in B";
    default: return ChangeName(change);
  }
}

const v1::MeasureResult& ResultOf(const std::optional<StoredRecord>& record) {
  return record->record.result();
}

// "other trace, other worker (w1, w2)".
std::string DiffRemarks(const KeyDifference& difference) {
  if (!difference.first || !difference.second) return "";
  std::vector<std::string> remarks;
  if (!difference.same_trace) remarks.emplace_back("other trace");
  if (difference.same_trace && !difference.same_code) remarks.emplace_back("other code");
  const v1::DeviceInfo &a = ResultOf(difference.first).device(), &b = ResultOf(difference.second).device();
  if (!difference.same_device)
    remarks.push_back(absl::StrCat("other device (", a.model(), ", ", b.model(), ")"));
  if (!difference.same_worker)
    remarks.push_back(absl::StrCat("other worker (", a.worker(), ", ", b.worker(), ")"));
  return Printable(absl::StrJoin(remarks, ", "));
}

DiffRow RowOf(const KeyDifference& difference) {
  const auto time = [](const std::optional<StoredRecord>& record) {
    return record ? FormatSeconds(ResultOf(record).timing().seconds()) : "-";
  };
  const RankedKey& key = difference.key;
  return {difference.change,
          difference.ratio,
          {Words(difference.change), difference.ratio > 0 ? absl::StrFormat("%.3fx", difference.ratio) : "-",
           time(difference.first), time(difference.second), ProtocolName(key.protocol),
           absl::StrCat(key.workload_name, " ", key.key.workload_hash.substr(0, kHashDigits)), key.key.target,
           DiffRemarks(difference)}};
}

ordered_json SideJson(const std::optional<StoredRecord>& record) {
  if (!record) return nullptr;
  const v1::MeasureResult& result = ResultOf(record);
  const v1::Timing& timing = result.timing();
  const auto time = [](double seconds) {
    return seconds > 0 ? ordered_json(seconds) : ordered_json(nullptr);
  };
  return {{"record", record->id},
          {"trial", record->record.trial()},
          {"seconds", timing.seconds()},
          {"ci_low_seconds", time(timing.ci_low_seconds())},
          {"ci_high_seconds", time(timing.ci_high_seconds())},
          {"timer_version", timing.timer_version()},
          {"trace", record->record.trace()},
          {"code_digest", result.code_digest()},
          {"worker", result.device().worker()},
          {"device", result.device().device()},
          {"device_model", result.device().model()}};
}

void WriteDiffJson(const KeyDifference& difference, std::ostream& out) {
  const bool both = difference.first && difference.second;
  const auto known = [both](bool value) { return both ? ordered_json(value) : ordered_json(nullptr); };
  out << ordered_json{{"change", ChangeName(difference.change)},
                      {"workload_name", difference.key.workload_name},
                      {"workload_hash", difference.key.key.workload_hash},
                      {"target", difference.key.key.target},
                      {"protocol", ProtocolName(difference.key.protocol)},
                      {"ratio",
                       difference.ratio > 0 ? ordered_json(difference.ratio) : ordered_json(nullptr)},
                      {"intervals_overlap", difference.intervals_overlap
                                                ? ordered_json(*difference.intervals_overlap)
                                                : ordered_json(nullptr)},
                      {"same_trace", known(difference.same_trace)},
                      {"same_code", known(difference.same_code)},
                      {"same_device", known(difference.same_device)},
                      {"same_worker", known(difference.same_worker)},
                      {"first", SideJson(difference.first)},
                      {"second", SideJson(difference.second)}}
      << "\n";
}

void WriteDiffTable(std::vector<DiffRow> found, const LogDiffArgs& args, Counts counts, std::ostream& out) {
  out << "A is " << args.first << ", B is " << args.second
      << ": the best of each workload, target and protocol\n";
  std::ranges::stable_sort(found, [](const DiffRow& a, const DiffRow& b) {
    const double of_a = a.change == Change::kFaster ? a.ratio : -a.ratio;
    const double of_b = b.change == Change::kFaster ? b.ratio : -b.ratio;
    return std::make_tuple(PlaceOf(a.change), of_a) < std::make_tuple(PlaceOf(b.change), of_b);
  });
  std::vector<std::vector<std::string>> rows = {
      {"B is", "B/A", "A", "B", "caches", "workload", "target", ""}};
  for (DiffRow& row : found) rows.push_back(std::move(row.cells));
  if (rows.size() > 1) out << FormatTable(rows, {1, 2, 3}) << "\n";
  out << counts[Change::kSame] << " the same, " << counts[Change::kFaster] << " faster in B, "
      << counts[Change::kSlower] << " slower in B, " << counts[Change::kTie] << " ties, ";
  if (counts[Change::kOtherTimer] > 0) out << counts[Change::kOtherTimer] << " of other timers, ";
  out << counts[Change::kOnlyFirst] << " only in A, " << counts[Change::kOnlySecond] << " only in B\n";
}

}  // namespace

absl::Status LogDiffCommand(const LogDiffArgs& args, std::ostream& out) {
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto first, TuningLog::Open(args.first, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const auto second, TuningLog::Open(args.second, OpenMode::kRead));
  left_out.Watch(first.get());
  left_out.Watch(second.get());
  Counts counts;
  std::vector<DiffRow> rows;
  MYCC_RETURN_IF_ERROR(ForEachDifference(*first, *second, [&](const KeyDifference& difference) {
    ++counts[difference.change];
    if (difference.change == Change::kSame) return absl::OkStatus();
    if (args.json) {
      WriteDiffJson(difference, out);
    } else {
      rows.push_back(RowOf(difference));
    }
    return absl::OkStatus();
  }));
  if (!args.json) {
    WriteDiffTable(std::move(rows), args, counts, out);
    return left_out.After(absl::OkStatus());
  }
  ordered_json summary{{"first", args.first}, {"second", args.second}};
  for (const Change change : {Change::kSame, Change::kFaster, Change::kSlower, Change::kTie,
                              Change::kOtherTimer, Change::kOnlyFirst, Change::kOnlySecond})
    summary[ChangeName(change)] = counts[change];
  out << summary << "\n";
  return left_out.After(absl::OkStatus());
}

}  // namespace mycc
