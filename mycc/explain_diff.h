// `mycc explain --diff A B`: two records of a log side by side: their times, their code, their decisions and
// their steps.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace mycc {

// Ids or names of trials. Errors: those of the log, NotFound for a record that it lacks.
absl::Status ExplainDiff(const std::string& log, const std::string& first, const std::string& second,
                         std::ostream& out);

}  // namespace mycc
