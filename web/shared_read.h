// Reads something for many callers at once: those who ask while a read is under way get its result, and a
// result serves for a while. So many open pages cost the deciding thread what one does. Thread rule:
// thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/reply.h"
#include "server/time_source.h"

namespace mycc {

template <typename Value>
class SharedRead {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Value>>;
  using Done = std::function<void(const Result&)>;

  // `read` answers by any thread. The object outlives its answers.
  SharedRead(std::function<void(Reply<Value>)> read, double max_age_seconds, const TimeSource* time)
      : read_(std::move(read)), max_age_seconds_(max_age_seconds), time_(time) {}

  void Get(const Done& done) {
    std::shared_ptr<const Value> fresh;
    {
      const MutexLock lock(&mutex_);
      if (last_ != nullptr && time_->Seconds() - read_at_ < max_age_seconds_) {
        fresh = last_;
      } else {
        waiting_.push_back(done);
        if (waiting_.size() > 1) return;  // a read is under way
      }
    }
    if (fresh != nullptr) {
      done(fresh);
    } else {
      read_([this](absl::StatusOr<Value> value) { Answer(std::move(value)); });
    }
  }

 private:
  void Answer(absl::StatusOr<Value> value) {
    const Result result =
        value.ok() ? Result(std::make_shared<const Value>(*std::move(value))) : value.status();
    std::vector<Done> waiting;
    {
      const MutexLock lock(&mutex_);
      waiting = std::exchange(waiting_, {});
      if (result.ok()) {
        last_ = *result;
        read_at_ = time_->Seconds();
      }
    }
    for (const Done& done : waiting) done(result);
  }

  const std::function<void(Reply<Value>)> read_;
  const double max_age_seconds_;
  const TimeSource* const time_;
  Mutex mutex_;
  std::shared_ptr<const Value> last_ ABSL_GUARDED_BY(mutex_);
  double read_at_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mycc
