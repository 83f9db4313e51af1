// Checks of certificates, keys and tokens.
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "doctor/address.h"
#include "doctor/certificate.h"
#include "doctor/installation.h"
#include "doctor/validity.h"
#include "proto/certificates.h"

namespace mycc {
namespace {

constexpr int64_t kDay = 24 * 3600, kSoon = 21 * kDay;
constexpr char kRenew[] = "make or ask for a new one, and put it in the file's place";

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// The name of a server that listens here: that of its address, where it has one.
void CheckName(const Installation& installation, const std::string& pem, Findings* findings) {
  const std::string names = NamesIn(pem);
  if (names.empty()) {
    findings->push_back(Fault("the certificate has no subjectAltName, so clients refuse it",
                              "make one with the names that clients call the server by"));
    return;
  }
  const std::optional<HostPort> place = SplitAddress(installation.listen);
  if (place && !IsAnyAddress(place->host) && !IsFor(pem, place->host)) {
    findings->push_back(Warning(absl::StrCat("the certificate is for ", names, ", not for ", place->host),
                                "make one with the names that clients call the server by"));
  } else {
    findings->push_back(Ok(absl::StrCat("for ", names)));
  }
}

// A certificate with its key: sound, belonging together, and in its time.
Findings CheckPair(const Installation& installation, const std::string& certificates,
                   const std::string& key_file) {
  const absl::StatusOr<std::string> pem = ReadFile(certificates, kMostSecretBytes);
  const absl::Status good = pem.ok() ? CheckCertificates(*pem, certificates) : pem.status();
  if (!good.ok()) return {Fault(std::string(good.message()), kRenew)};
  Findings findings = CheckValidity(*pem, certificates, installation.system.unix_seconds());
  if (key_file.empty()) return findings;
  const absl::StatusOr<std::string> key = ReadFile(key_file, kMostSecretBytes);
  const absl::Status fits = key.ok() ? CheckKey(*key, key_file, *pem) : key.status();
  if (!fits.ok())
    findings.push_back(Fault(std::string(fits.message()), "put the key of this certificate there"));
  return findings;
}

}  // namespace

Findings CheckValidity(const std::string& pem, const std::string& what, int64_t now) {
  Findings findings;
  for (const CertificateDates& facts : FactsOf(pem)) {
    const std::string name = absl::StrCat(what, " (", facts.subject, ")");
    const int64_t days = (facts.end_unix_seconds - now) / kDay;
    if (now < facts.begin_unix_seconds) {
      findings.push_back(Fault(name + " is not valid yet", "set the clock right, or wait"));
    } else if (now >= facts.end_unix_seconds) {
      findings.push_back(Fault(name + " has expired", kRenew));
    } else if (facts.end_unix_seconds - now < kSoon) {
      findings.push_back(Warning(absl::StrCat(name, " expires in ", days, " days"), kRenew));
    } else {
      findings.push_back(Ok(absl::StrCat(name, " is valid for ", days, " days")));
    }
  }
  return findings;
}

Findings CheckOwnCertificate(const Installation& installation) {
  if (installation.certificates.empty()) return {};
  Findings findings = CheckPair(installation, installation.certificates, installation.key);
  const absl::StatusOr<std::string> pem = ReadFile(installation.certificates, kMostSecretBytes);
  if (pem.ok() && CheckCertificates(*pem, installation.certificates).ok())
    CheckName(installation, *pem, &findings);
  return findings;
}

Findings CheckCredential(const Installation& installation) {
  if (!installation.server || installation.server->tls_cert_file.empty()) return {};
  return CheckPair(installation, installation.server->tls_cert_file, installation.server->tls_key_file);
}

Findings CheckTrust(const Installation& installation) {
  if (!installation.server || installation.server->tls_ca_file.empty()) return {};
  const std::string& path = installation.server->tls_ca_file;
  if (path == "system") return {Ok("the certificates that this host trusts")};
  const absl::StatusOr<std::string> trusted = ReadFile(path, kMostSecretBytes);
  const absl::Status good = trusted.ok() ? CheckCertificates(*trusted, path) : trusted.status();
  if (!good.ok()) return {Fault(std::string(good.message()), "copy the certificate of the server's CA")};
  Findings findings = CheckValidity(*trusted, path, installation.system.unix_seconds());
  const absl::StatusOr<std::string> own = ReadFile(installation.certificates, kMostSecretBytes);
  if (!installation.certificates.empty() && own.ok()) {
    const absl::Status is_signed = CheckSigned(*own, *trusted);
    if (!is_signed.ok()) {
      findings.push_back(Fault(
          absl::StrCat(installation.certificates, " is not signed by ", path, ": ", is_signed.message()),
          "give clients the CA that signed it, and the server the whole chain"));
    }
  }
  return findings;
}

Findings CheckSecrets(const Installation& installation) {
  std::vector<std::string> paths = {installation.key};
  if (installation.server) {
    paths.push_back(installation.server->token_file);
    paths.push_back(installation.server->tls_key_file);
  }
  Findings findings;
  for (const std::string& path : paths) {
    struct stat status;
    if (path.empty() || stat(path.c_str(), &status) != 0) continue;
    if ((status.st_mode & (S_IROTH | S_IWOTH)) != 0) {
      findings.push_back(
          Fault(path + " can be read or changed by every user of this host",
                absl::StrCat("chmod 600 ", path, ", and make a new one where it may have been read")));
    } else {
      findings.push_back(Ok(path + " is closed to others"));
    }
  }
  return findings;
}

}  // namespace mycc
