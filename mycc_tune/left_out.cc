#include "mycc_tune/left_out.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {

void LeftOut::Watch(TuningLog* log) {
  log->OnDamage([this, path = log->path()](int64_t id, const absl::Status&) { ids_[path].insert(id); });
}

absl::Status LeftOut::After(const absl::Status& done) const {
  if (!done.ok() || ids_.empty()) return done;
  std::vector<std::string> logs;
  for (const auto& [path, ids] : ids_)
    logs.push_back(absl::StrCat(path, ": damaged and left out: record ", absl::StrJoin(ids, ", ")));
  return absl::DataLossError(absl::StrCat(absl::StrJoin(logs, "; "), "; restore the log from a backup"));
}

}  // namespace mycc
