#include "command/numbers.h"

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

std::string NotFrom(uint64_t least, const std::string& word) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number) && number >= least) return "";
  const bool is_too_large =
      !word.empty() && word.find_first_not_of("0123456789") == std::string::npos && word[0] != '0';
  if (is_too_large) {
    return absl::StrCat("`", word, "`; expected a whole number, at most ",
                        std::numeric_limits<uint64_t>::max());
  }
  return absl::StrCat("`", word, "`; expected a whole number, ", least, " or more");
}

}  // namespace

std::string NotWhole(const std::string& word) { return NotFrom(0, word); }
std::string NotPositive(const std::string& word) { return NotFrom(1, word); }

}  // namespace mycc
