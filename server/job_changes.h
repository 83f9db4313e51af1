// Runs the changes of each job one after the other: a change, or a read of what is being changed, waits until
// the previous change is done. Thread rule: thread-compatible.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/log_writer.h"

namespace mycc {

class JobChanges {
 public:
  explicit JobChanges(WriteExecutor write) : write_(std::move(write)) {}

  // `key`, a job or a submission, is being looked at or changed, until Release was called as often as Hold.
  void Hold(const std::string& key) { ++held_[key].holders; }
  void Release(const std::string& key);
  bool IsHeld(const std::string& key) const { return held_.contains(key); }
  // Makes a change of the job or submission.
  void Change(const std::string& key, LogWrite write, LogWriteDone done);
  // Whether `key` is held: then `call` comes when it is not.
  bool Defer(const std::string& key, std::function<void()> call);

 private:
  struct Held {
    int holders = 0;
    std::vector<std::function<void()>> deferred;
  };

  const WriteExecutor write_;
  std::map<std::string, Held> held_;  // by key
};

}  // namespace mycc
