// Checks of numbers on a command line, for CLI11's check(): each returns nothing when the word will do, and
// what was expected otherwise. Pure functions.
#pragma once

#include <string>

namespace mycc {

// 0, 1, 2, ...
std::string NotWhole(const std::string& word);
// 1, 2, ...
std::string NotPositive(const std::string& word);

}  // namespace mycc
