// An option whose value is one of a few words. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mycc {

// For CLI11's check(): the help lists the words, the error proposes the nearest one, and the shells complete
// them (completion.h).
CLI::Validator OneOf(std::vector<std::string> words);

}  // namespace mycc
