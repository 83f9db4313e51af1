// The page's files, which the bundler makes of web/ui and which are part of the program. Thread rule:
// functions are re-entrant.
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace mycc {

struct Asset {
  std::string_view path;  // "/assets/app-1f3c.js"; "/" is the page
  std::string_view type;
  std::string_view digest;  // of the contents
  std::string_view gzip;
};
absl::Span<const Asset> Assets();

// The page of a job's report, compressed: one file with its script and style, and a place for its data.
std::string_view ReportTemplate();
inline constexpr std::string_view kReportData = "@REPORT_DATA@";

}  // namespace mycc
