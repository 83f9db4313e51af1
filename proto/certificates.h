// Checks PEM files before gRPC reads them, because gRPC's errors do not say what is wrong, and reads what a
// certificate says of its owner. Pure functions. Errors are InvalidArgument, and name the file and what was
// expected.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

// At least one certificate, and none that is malformed. `path` is where they were read from.
absl::Status CheckCertificates(const std::string& pem, const std::string& path);

// A private key, without a password, for the first of the certificates.
absl::Status CheckKey(const std::string& pem, const std::string& path, const std::string& certificates);

// The first certificate of a PEM text.
struct CertificateFacts {
  std::string sha256;       // of its DER form, as 64 hexadecimal digits
  std::string common_name;  // of its subject; empty: it has none, or one that no text can be
  int64_t begins_unix_seconds = 0, expires_unix_seconds = 0;
};
absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& pem);

// Whether the first certificate of `chain` is, now, a client's that one of `authorities` has signed, perhaps
// through the others of the chain; the error says why not.
absl::Status CheckClientChain(const std::string& chain, const std::string& authorities);

// Whether the first certificate of `pem` has the signature of the first of `authority`, whatever the time is.
bool IsSignedBy(const std::string& pem, const std::string& authority);

}  // namespace mycc
