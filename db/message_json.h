// Converts any protobuf message to JSON and back without loss. Keys are the fields' names, enums are words
// (the value's name in lower case without its type's prefix: "wrong_result"), numbers are numbers, and
// "inf", "-inf" and "nan" stand for numbers that JSON lacks. Fields at their defaults are left out. Pure
// functions.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace mycc {

nlohmann::ordered_json MessageToJson(const google::protobuf::Message& message);

// The same with every field, for readers that want all keys of every object: fields at their defaults too,
// repeated ones without elements as [], and null for messages, optional fields and enums that are not set.
nlohmann::ordered_json WholeMessageToJson(const google::protobuf::Message& message);

// Sets what the JSON has. InvalidArgument names the key ("result.timing.seconds") and what was expected:
// unknown keys, wrong types, numbers out of range, unknown words and texts that are not UTF-8 are refused.
absl::Status MessageFromJson(const nlohmann::json& json, google::protobuf::Message* message);

}  // namespace mycc
