#include "laboratory/result_value.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace mycc {
namespace {

// The time in milliseconds that old versions of Kernel Tuner wrote for a failure.
constexpr double kPenaltyTime = 1e20;

}  // namespace

bool IsRunTime(const nlohmann::json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0 &&
         value.get<double>() < kPenaltyTime;
}

std::vector<double> Repetitions(const nlohmann::json& entry, const char* member) {
  std::vector<double> times;
  const auto found = entry.find(member);
  if (found == entry.end() || !found->is_array()) return times;
  for (const nlohmann::json& time : *found) {
    if (IsRunTime(time)) times.push_back(time.get<double>());
  }
  return times;
}

std::string FailureWord(const std::string& name) {
  if (name == "CompilationFailedConfig") return "compile";
  if (name == "RuntimeFailedConfig") return "runtime";
  if (name == "InvalidConfig") return "constraints";
  return name.empty() ? "runtime" : name;
}

bool IsHigherBetter(const std::string& objective) {
  const std::string name = absl::AsciiStrToLower(objective);
  for (const char* rate : {"/s", "/w", "/j", "flops", "score", "fitness", "throughput", "performance"}) {
    if (absl::EndsWith(name, rate)) return true;
  }
  return false;
}

ObjectiveKind KindOfObjective(const std::string& name) {
  const std::string word = absl::AsciiStrToLower(name);
  for (const char* gain : {"/w", "/j", "score", "fitness"}) {
    if (absl::EndsWith(word, gain)) return ObjectiveKind::kGain;
  }
  for (const char* cost : {"energy", "power", "cost", "loss", "joule", "edp"}) {
    if (absl::StrContains(word, cost)) return ObjectiveKind::kCost;
  }
  return ObjectiveKind::kTime;
}

std::optional<double> SecondsOfUnit(const std::string& unit) {
  const std::string word = absl::AsciiStrToLower(unit);
  // The first spelling is Kernel Tuner's.
  if (word == "miliseconds" || word == "milliseconds" || word == "ms") return 1e-3;
  if (word == "seconds" || word == "s") return 1.0;
  if (word == "microseconds" || word == "us") return 1e-6;
  if (word == "nanoseconds" || word == "ns") return 1e-9;
  return std::nullopt;
}

}  // namespace mycc
