// The facts of X.509 certificates that operators stumble over: their time, their names, and who signed them.
// Thread rule: re-entrant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

struct CertificateDates {
  std::string subject;  // "CN = farm"
  int64_t begin_unix_seconds = 0, end_unix_seconds = 0;
};

// Certificates in PEM, the server's own first. The texts are checked before (proto/certificates.h); what is
// malformed is left out.
std::vector<CertificateDates> FactsOf(const std::string& pem);
// Whether the first certificate is for the name, which may be an IP address.
bool IsFor(const std::string& pem, const std::string& name);
// The names that the first certificate is for, "farm.example.org, 10.0.0.7".
std::string NamesIn(const std::string& pem);
// Whether the first certificate leads over the others to one in `trusted`, whatever the time. The error says
// why not.
absl::Status CheckSigned(const std::string& pem, const std::string& trusted);

// The certificates that a server shows, as PEM. Unavailable when it cannot be reached or speaks no TLS.
absl::StatusOr<std::string> CertificatesOfServer(const std::string& host, const std::string& port,
                                                 double timeout_seconds);

}  // namespace mycc
