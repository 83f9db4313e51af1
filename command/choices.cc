#include "command/choices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"

namespace mycc {

CLI::Validator OneOf(std::vector<std::string> words) {
  const std::string description = absl::StrCat("{", absl::StrJoin(words, ","), "}");
  return CLI::Validator(
      [words = std::move(words)](std::string& word) -> std::string {
        if (std::ranges::find(words, word) != words.end()) return "";
        return absl::StrCat("`", word, "`; expected one of ", absl::StrJoin(words, ", "),
                            DidYouMean(word, words));
      },
      description);
}

}  // namespace mycc
