#include "mycc_tune/status_json.h"

#include <set>
#include <string_view>

#include "db/message_json.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

// Numbers of these messages that say by 0 that there is none.
bool IsUnknownAtZero(std::string_view key) {
  static const std::set<std::string_view>& keys =
      *new std::set<std::string_view>{"baseline_ratio",      "budget_seconds",
                                      "clock_mhz",           "deadline_unix_micros",
                                      "latency_seconds",     "default_latency_seconds",
                                      "memory_clock_mhz",    "power_limit_watts",
                                      "power_watts",         "processes",
                                      "temperature_celsius", "trials_planned"};
  return keys.contains(key);
}

void NullUnknown(ordered_json* object) {
  for (auto& [key, value] : object->items()) {
    if (value.is_object()) {
      NullUnknown(&value);
    } else if (value.is_number() && value == 0 && IsUnknownAtZero(key)) {
      value = nullptr;
    }
  }
}

}  // namespace

std::string JobLine(const v1::JobProgress& job) {
  ordered_json line = WholeMessageToJson(job);
  // The server lists jobs without these.
  line.erase("tasks");
  line.erase("devices");
  line.erase("milestones");
  NullUnknown(&line);
  return line.dump();
}

std::string DeviceLine(const v1::DeviceStatus& device) {
  ordered_json line = WholeMessageToJson(device);
  NullUnknown(&line);
  return line.dump();
}

}  // namespace mycc
