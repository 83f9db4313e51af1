// The two macros that propagate absl::Status, and the error of what cannot be done. Every fallible boundary
// returns Status or StatusOr; a message says what failed, where, and what was expected. Thread rule: pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace mycc {

template <typename Part>
const Part& MessagePart(const Part& part) {
  return part;
}
inline std::string MessagePart(std::string_view part) { return std::string(part); }

// FailedPrecondition with these parts, as absl::StrCat joins them: what was asked for is not possible here,
// for the reason that the message says.
template <typename... Parts>
absl::Status Refusal(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(MessagePart(parts)...));
}

}  // namespace mycc

#define MYCC_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                 \
    if (::absl::Status mycc_status_ = (expr); !mycc_status_.ok()) return mycc_status_; \
  } while (false)

#define MYCC_STATUS_CONCAT_INNER(a, b) a##b
#define MYCC_STATUS_CONCAT(a, b) MYCC_STATUS_CONCAT_INNER(a, b)

// MYCC_ASSIGN_OR_RETURN(auto x, F()): declares or assigns x from a StatusOr, or returns its status.
#define MYCC_ASSIGN_OR_RETURN(lhs, expr) \
  MYCC_ASSIGN_OR_RETURN_IMPL(MYCC_STATUS_CONCAT(mycc_statusor_, __LINE__), lhs, expr)
#define MYCC_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return std::move(tmp).status();   \
  lhs = std::move(tmp).value()
