// Reads recorded spaces: a file of results, and the T1 file of their space where there is one. The only part
// of the laboratory, beside the log's, that touches files.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "laboratory/recorded_space.h"
#include "laboratory/result_table.h"
#include "laboratory/t1.h"

namespace mycc {

// A T1 file: plain, gzip or zip.
absl::StatusOr<T1Space> ReadT1File(const std::string& path);

// A Kernel Tuner cache or a T4 file: plain, gzip or zip. With `t1`, the space is its: results that break its
// constraints are left out. Without, the space is what the results hold. A space or a device without a name
// gets the file's folder's, or the file's. Errors name the file, the place in it and what was expected.
absl::StatusOr<RecordedSpace> ReadRecordedSpace(const std::string& path, const T1Space* t1,
                                                SpaceCounts* counts = nullptr);

}  // namespace mycc
