// Exports records in T4, the auto-tuning community's result format (schema version 1.0.0), for other tools.
// Times are in milliseconds. A configuration is {"workload", "target", "trace"}. Failures of devices and
// workers are left out, since they say nothing about a candidate.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "absl/status/statusor.h"
#include "db/record_filter.h"
#include "db/tuning_log.h"

namespace mycc {

// Returns how many results were written.
absl::StatusOr<int64_t> ExportT4(const TuningLog& log, const RecordFilter& filter, std::ostream& out);

}  // namespace mycc
