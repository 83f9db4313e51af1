// A search whose candidates are numbers in a row: what a fuzzer of the server needs of one. Thread rule:
// thread-compatible.
#pragma once

#include <memory>

#include "server/job_search.h"

namespace mycc {

absl::StatusOr<std::unique_ptr<JobSearch>> StartScriptedSearch(const SearchStart& start);

}  // namespace mycc
