#include "server/job_changes.h"

namespace mycc {

void JobChanges::Release(const std::string& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || --found->second.holders > 0) return;
  const std::vector<std::function<void()>> deferred = std::move(found->second.deferred);
  held_.erase(found);
  for (const std::function<void()>& call : deferred) call();
}

void JobChanges::Change(const std::string& key, LogWrite write, LogWriteDone done) {
  Hold(key);
  write_(std::move(write), [this, key, done = std::move(done)](const absl::Status& status) {
    done(status);
    Release(key);
  });
}

bool JobChanges::Defer(const std::string& key, std::function<void()> call) {
  const auto found = held_.find(key);
  if (found == held_.end()) return false;
  found->second.deferred.push_back(std::move(call));
  return true;
}

}  // namespace mycc
