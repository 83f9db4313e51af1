// Something that happened in a server or a worker: for people a line, for programs named fields. Thread rule:
// a value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace mycc {

struct Event {
  Event() = default;
  // A line for people that has no fields. Implicit, so that a log takes plain lines as well.
  Event(std::string line) : text(std::move(line)) {}  // NOLINT(google-explicit-constructor)
  Event(const char* line) : text(line) {}             // NOLINT(google-explicit-constructor)
  Event(std::string name, std::string line) : name(std::move(name)), text(std::move(line)) {}

  std::string name = "message";  // "trial.finished"
  std::string text;              // empty: of no interest to people
  bool is_warning = false;
  // Its subjects; empty or 0: it has no such.
  std::string job, trial, worker, device;
  uint32_t attempt = 0;
  std::string status;  // of a trial
  double seconds = 0;  // likewise: its time
};

// Takes events, on any thread; it must not block for long.
using EventLog = std::function<void(const Event&)>;

}  // namespace mycc
