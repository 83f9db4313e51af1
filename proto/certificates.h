// Checks PEM files before gRPC reads them, because gRPC's errors do not say what is wrong. Pure functions.
// Errors are InvalidArgument, and name the file and what was expected.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// At least one certificate, and none that is malformed. `path` is where they were read from.
absl::Status CheckCertificates(const std::string& pem, const std::string& path);

// A private key, without a password, for the first of the certificates.
absl::Status CheckKey(const std::string& pem, const std::string& path, const std::string& certificates);

}  // namespace mycc
