// Finds records that may help a workload without a record of its own: the same computation, for another
// target or at another shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "db/tuning_log.h"

namespace mycc {

struct NearRecord {
  int64_t record;
  Trace trace;
  std::string difference;  // "same workload, tuned for `v1 cpu ...`"; "same computation, shape 128x768
                           // instead of 100x768"
  double distance;         // 0 for the same workload; else how far the extents are apart
};

struct NearRecords {
  std::vector<NearRecord> records;  // the nearest first, at most a few
  std::string why_none;             // which field of the key matched nothing, when there are none
};

// Records of targets whose code may not run here are left out.
absl::StatusOr<NearRecords> FindNearRecords(const TuningLog& log,
                                            absl::Span<const v1::TimingProtocol> protocols,
                                            const Workload& canonical, const Target& target);

}  // namespace mycc
