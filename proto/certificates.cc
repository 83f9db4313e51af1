#include "proto/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bytes = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

Bytes BytesOf(const std::string& pem) {
  return Bytes(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Certificate NextCertificate(BIO* bytes) {
  return Certificate(PEM_read_bio_X509(bytes, nullptr, nullptr, nullptr));
}

absl::Status Refuse(const std::string& path, const std::string& what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("`", path, "` ", what));
}

using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;

void FreeAll(STACK_OF(X509) * certificates) { sk_X509_pop_free(certificates, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), Free<FreeAll>>;

// Seconds since 1970; 0 where the certificate's time is malformed.
int64_t UnixSeconds(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

// The one common name of a certificate's subject. A name with a zero byte inside, or a second one, could be
// read as another than was signed: such a certificate has none.
std::string CommonNameOf(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
  unsigned char* bytes = nullptr;
  const int size = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  const std::string name(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return name.find('\0') == std::string::npos ? name : "";
}

// A key with a password is refused, because no password is asked for.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status CheckCertificates(const std::string& pem, const std::string& path) {
  const Bytes bytes = BytesOf(pem);
  int count = 0;
  while (NextCertificate(bytes.get()) != nullptr) ++count;
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (count > 0 && is_end) return absl::OkStatus();
  if (!is_end) return Refuse(path, absl::StrCat("holds a malformed certificate, number ", count + 1));
  return Refuse(path, "holds no certificate; expected PEM, with -----BEGIN CERTIFICATE-----");
}

absl::Status CheckKey(const std::string& pem, const std::string& path, const std::string& certificates) {
  const Key key(PEM_read_bio_PrivateKey(BytesOf(pem).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Refuse(path,
                  "holds no private key; expected PEM, with -----BEGIN PRIVATE KEY-----, and no password");
  }
  const Certificate own = NextCertificate(BytesOf(certificates).get());
  if (own != nullptr && X509_check_private_key(own.get(), key.get()) == 1) return absl::OkStatus();
  return Refuse(path, "is not the key of the certificate; expected the two that were made together");
}

absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& pem) {
  const Certificate certificate = NextCertificate(BytesOf(pem).get());
  ERR_clear_error();
  if (certificate == nullptr)
    return absl::InvalidArgumentError("there is no certificate; expected one in PEM");
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.get(), &der);
  if (size < 0) return absl::InvalidArgumentError("the certificate cannot be encoded; expected a sound one");
  CertificateFacts facts;
  facts.sha256 = Sha256Hex(std::string_view(reinterpret_cast<const char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  facts.common_name = CommonNameOf(certificate.get());
  facts.begins_unix_seconds = UnixSeconds(X509_get0_notBefore(certificate.get()));
  facts.expires_unix_seconds = UnixSeconds(X509_get0_notAfter(certificate.get()));
  return facts;
}

absl::Status CheckClientChain(const std::string& chain, const std::string& authorities) {
  const Store store(X509_STORE_new());
  const Bytes roots = BytesOf(authorities);
  while (const Certificate root = NextCertificate(roots.get())) X509_STORE_add_cert(store.get(), root.get());
  const Bytes bytes = BytesOf(chain);
  const Certificate own = NextCertificate(bytes.get());
  const Chain others(sk_X509_new_null());
  while (Certificate other = NextCertificate(bytes.get())) sk_X509_push(others.get(), other.release());
  ERR_clear_error();
  if (own == nullptr) return absl::InvalidArgumentError("there is no certificate; expected one in PEM");
  const Verification verification(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(verification.get(), store.get(), own.get(), others.get()) != 1 ||
      X509_STORE_CTX_set_purpose(verification.get(), X509_PURPOSE_SSL_CLIENT) != 1) {
    return absl::InvalidArgumentError("the certificate cannot be verified; expected a sound one");
  }
  if (X509_verify_cert(verification.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(verification.get());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat("the certificate is not accepted: ", X509_verify_cert_error_string(error)));
}

bool IsSignedBy(const std::string& pem, const std::string& authority) {
  const Certificate certificate = NextCertificate(BytesOf(pem).get());
  const Certificate issuer = NextCertificate(BytesOf(authority).get());
  const bool is_signed = certificate != nullptr && issuer != nullptr &&
                         X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return is_signed;
}

}  // namespace mycc
