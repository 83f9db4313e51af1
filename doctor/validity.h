// The time of certificates, as findings. Thread rule: pure.
#pragma once

#include <cstdint>
#include <string>

#include "doctor/finding.h"

namespace mycc {

// A finding for each certificate in the PEM text; `what` names where they are from.
Findings CheckValidity(const std::string& pem, const std::string& what, int64_t now_unix_seconds);

}  // namespace mycc
