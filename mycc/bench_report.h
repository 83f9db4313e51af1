// The parts that the report of `mycc bench` on one library shares with that on two. Pure, but for the colours
// of the standard output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mycc/commands.h"
#include "mycc/samples.h"

namespace mycc {

// "library", "other_library" of two, "protocol", "threads" where they were chosen.
nlohmann::ordered_json BenchJson(const BenchOptions& options);

// Adds the median as NAME, and its interval as ci_low_NAME and ci_high_NAME, with `prefix` before each; null
// where the samples are too few for one.
void AddMedian(const MedianInterval& interval, const std::string& name, nlohmann::ordered_json* row,
               const std::string& prefix = "");

// A row's last cell: "of 3 samples", or what they are of, "wide interval", or "".
std::string RemarkOn(const MedianInterval& interval, const std::string& what = "sample");

// A table whose last column has the remarks. `right` as for FormatTable.
std::string BenchTable(const std::vector<std::vector<std::string>>& rows, const std::vector<int>& right);

}  // namespace mycc
