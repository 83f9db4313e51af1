// Values of parameters, as results of other tuners hold them. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "laboratory/python_value.h"

namespace mycc {

// InvalidArgument for an object, and for an integer of more than 64 bits.
absl::StatusOr<PythonValue> FromJson(const nlohmann::json& value);

// A value as Python prints it in the key of a cache's entry: 16, 0.5, True, float4.
PythonValue FromKeyWord(const std::string& word);

}  // namespace mycc
