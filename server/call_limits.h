// The most that one message may hold, in one table. A message stays in memory until the server has
// answered it, so each list and each text is bounded before anything looks at it. Fields that the table does
// not name have the bounds of their kind. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace mycc {

// Bytes of a text, entries of a list.
inline constexpr size_t kMostTextBytes = size_t{1} << 20, kMostListEntries = 4096;

struct FieldLimit {
  std::string_view field;  // "RegisterRequest.worker"
  size_t most;
};
const std::vector<FieldLimit>& FieldLimits();

// InvalidArgument names the field, its size and its limit. A time to wait must be a number.
absl::Status CheckMessageLimits(const google::protobuf::Message& message);

}  // namespace mycc
