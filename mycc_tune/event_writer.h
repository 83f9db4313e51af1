// Writes a program's events to a stream: lines for people, or one JSON object a line for programs. Thread
// rule: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "base/clock.h"
#include "base/event.h"
#include "base/mutex.h"

namespace mycc {

enum class LogFormat { kText, kJson };

// The object of an event: time, level, event, and those of its fields that it has.
std::string EventJson(const Event& event, int64_t unix_micros);

class EventWriter {
 public:
  EventWriter(LogFormat format, std::ostream* out, std::function<int64_t()> unix_micros = SystemUnixMicros)
      : format_(format), unix_micros_(std::move(unix_micros)), out_(out) {}

  // People get the events that have a text.
  void Write(const Event& event);

 private:
  const LogFormat format_;
  const std::function<int64_t()> unix_micros_;
  Mutex mutex_;
  std::ostream* const out_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace mycc
