// Records in T4, the auto-tuning community's format for results (schema version 1.0.0), for their tools to
// read. Times are in milliseconds. A configuration is {"workload", "target", "trace"}. Failures of devices
// and workers say nothing about a configuration and are left out.
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
