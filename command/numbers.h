// Checks of numbers on a command line, for CLI11's check(). Each returns an empty text when the word is
// valid, and otherwise what was expected. Pure functions.
#pragma once

#include <string>

namespace mycc {

// 0, 1, 2, ...
std::string NotWhole(const std::string& word);
// 1, 2, ...
std::string NotPositive(const std::string& word);

}  // namespace mycc
