#include "proto/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"

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

}  // namespace mycc
