// `mycc explain --why`: why a kernel's record was chosen: its rival, which is the next best schedule, the
// margin with its error bar, the decisions that differ, and the features that the cost model tells the two
// apart by.
#pragma once

#include <iosfwd>

#include "absl/status/status.h"
#include "codegen/target/target.h"
#include "db/tuning_log.h"
#include "mycc/finder.h"

namespace mycc {

// A kernel without a measured record, or without a rival, says so. Errors are those of a damaged log.
absl::Status ExplainWhy(const TuningLog& log, const Found& found, const Target& target, std::ostream& out);

}  // namespace mycc
