// A filter over a log's records, such as `--workload` and `--status`, as SQL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/database.h"
#include "proto/records.pb.h"

namespace mycc {

// All conditions must hold; an empty or zero member is no condition.
struct RecordFilter {
  std::string workload_hash;  // or the beginning of one
  std::string shape_erased_hash;
  std::string workload_name;
  std::string target;
  std::string job;
  std::string worker;
  std::vector<v1::MeasureStatus> statuses;
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
  int64_t since_unix_micros = 0;  // recorded at or after
  int64_t min_id = 0;             // inclusive, both
  int64_t max_id = 0;
  bool only_current = false;  // leaves out superseded records
  bool only_final = false;    // only what a final round has ranked
  bool newest_first = false;
  int64_t limit = 0;
};

// The filter as "WHERE ... ORDER BY r.id LIMIT ..." over SelectRecords(), with the values of its parameters.
struct FilterSql {
  std::string sql;
  std::vector<SqlValue> values;
};
FilterSql ToSql(const RecordFilter& filter);

}  // namespace mycc
