// The decisions of this project's traces as the parameters of a recorded space.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "laboratory/result_table.h"

namespace mycc {

// Gives a row the parameter `sketch`, the rule that made the trace, and one for each decision. Sketches that
// share a table may have different decisions. False, and no change, for a trace without a sketch: a
// hand-written one. InvalidArgument for text that is no trace; `where` names the row.
absl::StatusOr<bool> AddTraceDecisions(const std::string& trace, const std::string& where, ResultTable* table,
                                       ResultTable::Row* row);

}  // namespace mycc
