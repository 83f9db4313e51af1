// Makes the certificates of a farm: an authority, the server's, and those of callers. Keys are on the curve
// P-256. A server's certificate cannot be a client's, and a client's not a server's. Thread rule: functions
// are re-entrant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

struct MadeCertificate {
  std::string certificate, key;  // PEM
};

enum class CertificateUse { kServer, kClient };

struct CertificateWish {
  std::string common_name;
  CertificateUse use = CertificateUse::kClient;
  std::vector<std::string> hosts;  // a server's: names, and addresses in numbers
  int64_t now_unix_seconds = 0;
  int days = 0;
};

// An authority that signs itself.
absl::StatusOr<MadeCertificate> MakeAuthority(const std::string& common_name, int64_t now_unix_seconds,
                                              int days);
// InvalidArgument when the authority's key is not its certificate's, or a host is none.
absl::StatusOr<MadeCertificate> MakeCertificate(const CertificateWish& wish,
                                                const MadeCertificate& authority);

// A name as in DNS, with a `*` as the first label at most, or an address in numbers. InvalidArgument
// otherwise.
absl::Status CheckHost(const std::string& host);

}  // namespace mycc
