#include "mycc/debug_variables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/graph/optimize.h"
#include "codegen/passes/lower.h"
#include "command/misuse.h"

namespace mycc {

absl::StatusOr<PassDebug> ReadDebugVariables(const std::function<const char*(const char*)>& get) {
  // A variable that is set to nothing is as good as unset.
  const auto value_of = [&](const char* name) {
    const char* value = get(name);
    return std::string(value == nullptr ? "" : value);
  };
  PassDebug debug;
  const std::string level = value_of("MYCC_DEBUG");
  if (!level.empty() &&
      (!absl::SimpleAtoi(level, &debug.level) || debug.level < 0 || debug.level > kDebugPasses)) {
    return Misuse(absl::StrCat("MYCC_DEBUG: `", level, "`; expected a level from 0 to ", kDebugPasses));
  }
  debug.print_after = value_of("MYCC_PRINT_AFTER");
  std::vector<std::string> passes = PassNames();
  const std::vector<std::string> graph_passes = GraphPassNames();
  passes.insert(passes.begin(), graph_passes.begin(), graph_passes.end());
  if (!debug.print_after.empty() && std::ranges::find(passes, debug.print_after) == passes.end()) {
    return Misuse(absl::StrCat("MYCC_PRINT_AFTER: no pass `", debug.print_after, "`; expected one of ",
                               absl::StrJoin(passes, ", ")));
  }
  const std::string time = value_of("MYCC_TIME_PASSES");
  if (!time.empty() && time != "0" && time != "1")
    return Misuse(absl::StrCat("MYCC_TIME_PASSES: `", time, "`; expected 0 or 1"));
  debug.time = time == "1";
  return debug;
}

}  // namespace mycc
