// Counts with their nouns, for people. Pure functions.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace mycc {

// "1 trial", "512 trials", and "2 launches" with a plural of its own. The count may be a number's text.
inline std::string HowMany(const absl::AlphaNum& count, const std::string& noun,
                           const std::string& plural = "") {
  if (count.Piece() == "1") return absl::StrCat(count, " ", noun);
  return absl::StrCat(count, " ", plural.empty() ? noun + "s" : plural);
}

}  // namespace mycc
