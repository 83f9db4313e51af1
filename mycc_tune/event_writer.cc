#include "mycc_tune/event_writer.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/time/time.h"

namespace mycc {

std::string EventJson(const Event& event, int64_t unix_micros) {
  nlohmann::ordered_json json;
  // RFC 3339, always with microseconds, so that lines sort by their text.
  json["time"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(unix_micros), absl::UTCTimeZone());
  json["level"] = event.is_warning ? "warning" : "info";
  json["event"] = event.name;
  for (const auto& [name, value] : {std::pair("job", &event.job),
                                    {"trial", &event.trial},
                                    {"worker", &event.worker},
                                    {"device", &event.device},
                                    {"status", &event.status}}) {
    if (!value->empty()) json[name] = *value;
  }
  if (event.attempt > 0) json["attempt"] = event.attempt;
  if (event.seconds > 0) json["seconds"] = event.seconds;
  if (!event.text.empty()) json["text"] = event.text;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void EventWriter::Write(const Event& event) {
  if (format_ == LogFormat::kText && event.text.empty()) return;
  const std::string line = format_ == LogFormat::kText ? event.text : EventJson(event, unix_micros_());
  const MutexLock lock(&mutex_);
  *out_ << line << std::endl;
}

}  // namespace mycc
