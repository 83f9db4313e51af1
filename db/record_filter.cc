#include "db/record_filter.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {

FilterSql ToSql(const RecordFilter& filter) {
  FilterSql out;
  std::vector<std::string> conditions;
  // `condition` ends where its parameter stands.
  const auto add = [&](const char* condition, const auto& value) {
    out.values.emplace_back(value);
    conditions.push_back(absl::StrCat(condition, "?", out.values.size()));
  };
  if (!filter.workload_hash.empty()) {
    // Hashes are hexadecimal: "g" follows every continuation of the prefix, so that this is a range of the
    // index.
    add("w.hash >= ", filter.workload_hash);
    add("w.hash < ", filter.workload_hash + "g");
  }
  if (!filter.shape_erased_hash.empty()) add("w.shape_erased_hash = ", filter.shape_erased_hash);
  if (!filter.workload_name.empty()) add("w.name = ", filter.workload_name);
  if (!filter.target.empty()) add("t.text = ", filter.target);
  if (!filter.job.empty()) add("r.job = ", filter.job);
  if (!filter.worker.empty()) add("r.worker = ", filter.worker);
  if (filter.protocol != v1::TIMING_PROTOCOL_UNSPECIFIED) add("r.protocol = ", int64_t{filter.protocol});
  if (filter.since_unix_micros != 0) add("r.recorded >= ", filter.since_unix_micros);
  if (filter.min_id != 0) add("r.id >= ", filter.min_id);
  if (filter.max_id != 0) add("r.id <= ", filter.max_id);
  if (filter.only_current) conditions.push_back("r.superseded = 0");
  if (filter.only_final) conditions.push_back("r.rank_seconds IS NOT NULL");
  if (!filter.statuses.empty()) {
    std::vector<std::string> numbers;
    for (v1::MeasureStatus status : filter.statuses)
      numbers.push_back(absl::StrCat(static_cast<int>(status)));
    conditions.push_back(absl::StrCat("r.status IN (", absl::StrJoin(numbers, ", "), ")"));
  }
  if (!conditions.empty()) out.sql = absl::StrCat("WHERE ", absl::StrJoin(conditions, " AND "), " ");
  absl::StrAppend(&out.sql, "ORDER BY r.id", filter.newest_first ? " DESC" : "");
  if (filter.limit > 0) {
    out.values.emplace_back(filter.limit);
    absl::StrAppend(&out.sql, " LIMIT ?", out.values.size());
  }
  return out;
}

}  // namespace mycc
