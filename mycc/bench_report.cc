#include "mycc/bench_report.h"

#include "absl/strings/str_cat.h"
#include "command/colour.h"
#include "command/table.h"
#include "proto/precision.h"

namespace mycc {

using Json = nlohmann::ordered_json;

Json BenchJson(const BenchOptions& options) {
  Json json = {{"library", options.library}};
  if (!options.other.empty()) json["other_library"] = options.other;
  json["protocol"] = options.cold ? "cold" : "warm";
  if (options.threads > 0) json["threads"] = options.threads;
  return json;
}

void AddMedian(const MedianInterval& interval, const std::string& name, Json* row,
               const std::string& prefix) {
  const auto bound = [&](double value) { return interval.is_confident() ? Json(value) : Json(nullptr); };
  (*row)[prefix + name] = interval.median;
  (*row)[absl::StrCat(prefix, "ci_low_", name)] = bound(interval.low);
  (*row)[absl::StrCat(prefix, "ci_high_", name)] = bound(interval.high);
}

std::string RemarkOn(const MedianInterval& interval, const std::string& what) {
  if (!interval.is_confident())
    return absl::StrCat("of ", interval.samples, " ", what, interval.samples == 1 ? "" : "s");
  return interval.relative_width() > kWideInterval ? "wide interval" : "";
}

std::string BenchTable(const std::vector<std::vector<std::string>>& rows, const std::vector<int>& right) {
  const size_t remark = rows[0].size() - 1;
  return FormatTable(rows, right, [remark](size_t column, const std::string& cell) {
    return column == remark ? Painted(cell, Tone::kWarning, Stream::kOutput) : cell;
  });
}

}  // namespace mycc
