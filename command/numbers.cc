#include "command/numbers.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

std::string NotFrom(uint64_t least, const std::string& word) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number) && number >= least) return "";
  return absl::StrCat("`", word, "`; expected a whole number, ", least, " or more");
}

}  // namespace

std::string NotWhole(const std::string& word) { return NotFrom(0, word); }
std::string NotPositive(const std::string& word) { return NotFrom(1, word); }

}  // namespace mycc
