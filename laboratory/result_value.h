// The measurement in an entry of another tuner's results: times, or a value of another objective, or why
// there is none. Pure functions.
//
// The times of its runs count wherever all results have them, unless the objective is known to be no function
// of the time, such as energy. Then the value of the objective counts, and the times say what measuring it
// cost. A value that is better when it is higher, such as GFLOP/s, stands as its reciprocal, so that the
// least is the best and a fraction of the optimum keeps its meaning.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

// A time that a device can have taken, in a file's units: positive and less than Kernel Tuner's old mark of a
// failure.
bool IsRunTime(const nlohmann::json& value);

// The repetitions that are times; NaN and the like, for repetitions that are missing, are left out. Empty
// where the member is absent.
std::vector<double> Repetitions(const nlohmann::json& entry, const char* member);

// Kernel Tuner's names of failures, as T4's words: "CompilationFailedConfig" is "compile".
std::string FailureWord(const std::string& name);

enum class ObjectiveKind {
  kTime,  // or what follows from it alone: GFLOP/s
  kCost,  // the less the better: energy
  kGain,  // the more the better: GFLOPS/W
};
// The kind by its name, as Kernel Tuner's users spell it. A name that is not known counts as a time.
ObjectiveKind KindOfObjective(const std::string& name);
// Whether a value is better when it is higher.
bool IsHigherBetter(const std::string& objective);

// The seconds of a unit of time, "ms"; nullopt for other words.
std::optional<double> SecondsOfUnit(const std::string& unit);

}  // namespace mycc
