#include "proto/reproduction.h"

#include "absl/strings/str_cat.h"
#include "codegen/schedule/trace_names.h"
#include "proto/names.h"

namespace mycc {
namespace {

// In bash's $'...': one line, whatever the text.
std::string Quoted(const std::string& text) {
  std::string quoted = "$'";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\'' || c == '\\') {
      quoted += {'\\', c};
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string ReproductionOf(const v1::Assignment& assignment) {
  return absl::StrCat("mycc-tune measure <(printf %s ", Quoted(assignment.workload()),
                      ") --trace <(printf %s ", Quoted(CurrentTrace(assignment.trace())), ") --target ",
                      Quoted(assignment.target()), " --cache ", ProtocolName(assignment.protocol()),
                      " --seed ", assignment.seed());
}

}  // namespace mycc
