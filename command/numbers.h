// What a command line asks of a number, for CLI11's check(): nothing where the word will do, or what was
// expected. Pure functions.
#pragma once

#include <string>

namespace mycc {

// 0, 1, 2, ...
std::string NotWhole(const std::string& word);
// 1, 2, ...
std::string NotPositive(const std::string& word);

}  // namespace mycc
