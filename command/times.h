// Formats seconds and dates as the commands print them. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace mycc {

// "1.234 ms", with three decimals in the unit that suits.
std::string FormatSeconds(double seconds);
// "2026-01-31 12:00:00", in UTC.
std::string FormatUnixMicros(int64_t unix_micros);

}  // namespace mycc
