// A record as a line of JSON, and back. Lines are what exports and signed packs are made of (json_lines.h,
// record_pack.h). Pure functions, but for ReadLine.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/records.pb.h"

namespace mycc {

// Says what is wrong with a record's target: this folder keeps targets, and does not read them.
using CheckTarget = std::function<absl::Status(const std::string& target)>;

// {"record":{...}}, without a newline.
std::string RecordLine(const v1::Record& record);

// The value of "record" as a record, checked: the workload's hash, its target, and a time that fits its
// samples and its interval. InvalidArgument names the key and what was expected.
absl::StatusOr<v1::Record> RecordFromJson(const nlohmann::json& value, const CheckTarget& check_target);

inline constexpr size_t kMostLineBytes = 64 << 20;
// Like std::getline, but of a line that is too long it reads one byte more than a line may have, and stops.
// `ends` becomes whether a newline ended the line; null: it is not asked for.
bool ReadLine(std::istream& in, std::string* line, bool* ends = nullptr);

}  // namespace mycc
