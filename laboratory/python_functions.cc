#include "laboratory/python_functions.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"

namespace mycc {
namespace {

struct FunctionWord {
  const char* word;
  PythonFunction function;
  int least, most;  // arguments
};
constexpr int kManyArguments = 1 << 20;
constexpr FunctionWord kFunctions[] = {{"abs", PythonFunction::kAbs, 1, 1},
                                       {"all", PythonFunction::kAll, 1, 1},
                                       {"any", PythonFunction::kAny, 1, 1},
                                       {"bool", PythonFunction::kBool, 1, 1},
                                       {"float", PythonFunction::kFloat, 1, 1},
                                       {"int", PythonFunction::kInt, 1, 1},
                                       {"len", PythonFunction::kLen, 1, 1},
                                       {"list", PythonFunction::kList, 1, 1},
                                       {"max", PythonFunction::kMax, 1, kManyArguments},
                                       {"min", PythonFunction::kMin, 1, kManyArguments},
                                       {"pow", PythonFunction::kPow, 2, 2},
                                       {"range", PythonFunction::kRange, 1, 3},
                                       {"round", PythonFunction::kRound, 1, 2},
                                       {"set", PythonFunction::kSet, 1, 1},
                                       {"sorted", PythonFunction::kSorted, 1, 1},
                                       {"sum", PythonFunction::kSum, 1, 1},
                                       {"tuple", PythonFunction::kTuple, 1, 1},
                                       {"math.ceil", PythonFunction::kCeil, 1, 1},
                                       {"math.floor", PythonFunction::kFloor, 1, 1},
                                       {"math.gcd", PythonFunction::kGcd, 1, kManyArguments},
                                       {"math.log", PythonFunction::kLog, 1, 2},
                                       {"math.log10", PythonFunction::kLog10, 1, 1},
                                       {"math.log2", PythonFunction::kLog2, 1, 1},
                                       {"math.pow", PythonFunction::kMathPow, 2, 2},
                                       {"math.prod", PythonFunction::kProd, 1, 1},
                                       {"math.sqrt", PythonFunction::kSqrt, 1, 1}};

}  // namespace

absl::StatusOr<PythonFunction> FindPythonFunction(const std::string& name, int arguments) {
  const auto* word = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const FunctionWord& w) { return name == w.word; });
  if (word == std::end(kFunctions)) {
    std::vector<std::string> known;
    for (const FunctionWord& w : kFunctions) known.emplace_back(w.word);
    return absl::InvalidArgumentError(absl::StrCat("unknown function `", name, "`; expected one of ",
                                                   absl::StrJoin(known, ", "), DidYouMean(name, known)));
  }
  if (arguments < 0 || (arguments >= word->least && arguments <= word->most)) return word->function;
  std::string range = absl::StrCat(word->least);
  if (word->most == kManyArguments) {
    range = absl::StrCat("at least ", range);
  } else if (word->least != word->most) {
    absl::StrAppend(&range, " to ", word->most);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", name, "` with ", arguments, " arguments; expected ", range));
}

}  // namespace mycc
