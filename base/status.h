// The two macros that propagate absl::Status. Every fallible boundary returns Status or StatusOr; a message
// says what failed, where, and what was expected.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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
