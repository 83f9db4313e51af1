#include "mycc_tune/certificate_maker.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kSerialBytes = 16;
constexpr int64_t kSecondsOfDay = 86400;
// Clocks of hosts differ: a certificate counts from a while before it was made.
constexpr int64_t kEarlierSeconds = 3600;

template <auto kFree>
struct Frees {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Pem = std::unique_ptr<BIO, Frees<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Frees<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Frees<EVP_PKEY_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Frees<X509_EXTENSION_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Frees<BN_free>>;

absl::Status OpenSslFailed(const char* doing) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const why = ERR_reason_error_string(error);
  return absl::InternalError(
      absl::StrCat("cannot ", doing, ": ", why == nullptr ? "OpenSSL does not say why" : why));
}

std::string TextIn(BIO* bytes) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bytes, &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::Status SetSerial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return OpenSslFailed("draw a serial number");
  bytes[0] &= 0x7f;  // positive
  bytes[0] |= 0x40;  // and always of one length
  const NumberPtr number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr)
    return OpenSslFailed("set a serial number");
  return absl::OkStatus();
}

absl::Status AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1)
    return OpenSslFailed(absl::StrCat("add ", OBJ_nid2sn(kind), " to a certificate").c_str());
  return absl::OkStatus();
}

struct Validity {
  int64_t now_unix_seconds;
  int days;
};

// A certificate without extensions and signature.
absl::StatusOr<X509Ptr> Begin(const std::string& common_name, EVP_PKEY* key, const X509_NAME* issuer,
                              Validity validity) {
  X509Ptr certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1)
    return OpenSslFailed("begin a certificate");
  MYCC_RETURN_IF_ERROR(SetSerial(certificate.get()));
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* const name = reinterpret_cast<const unsigned char*>(common_name.data());
  const bool is_made = X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, name,
                                                  static_cast<int>(common_name.size()), -1, 0) == 1 &&
                       X509_set_issuer_name(certificate.get(), issuer == nullptr ? subject : issuer) == 1 &&
                       X509_set_pubkey(certificate.get(), key) == 1 &&
                       ASN1_TIME_set(X509_getm_notBefore(certificate.get()),
                                     validity.now_unix_seconds - kEarlierSeconds) != nullptr &&
                       ASN1_TIME_set(X509_getm_notAfter(certificate.get()),
                                     validity.now_unix_seconds + validity.days * kSecondsOfDay) != nullptr;
  if (!is_made) return OpenSslFailed("fill in a certificate");
  return certificate;
}

absl::StatusOr<MadeCertificate> SignAndPrint(X509* certificate, EVP_PKEY* key, EVP_PKEY* signing) {
  if (X509_sign(certificate, signing, EVP_sha256()) == 0) return OpenSslFailed("sign a certificate");
  const Pem printed(BIO_new(BIO_s_mem())), printed_key(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(printed.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(printed_key.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslFailed("print a certificate");
  }
  return MadeCertificate{TextIn(printed.get()), TextIn(printed_key.get())};
}

bool IsAddress(const std::string& host) {
  in6_addr bytes;
  return inet_pton(AF_INET, host.c_str(), &bytes) == 1 || inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

}  // namespace

absl::Status CheckHost(const std::string& host) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  constexpr size_t kMostNameOfHost = 253;
  const std::string name = absl::StartsWith(host, "*.") ? host.substr(2) : host;
  const bool is_name = !name.empty() && name.size() <= kMostNameOfHost && name.front() != '.' &&
                       name.find("..") == std::string::npos &&
                       name.find_first_not_of(kLetters) == std::string::npos;
  if (is_name || IsAddress(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", host, "\" is no host; expected a name such as farm.example.org, or an address in numbers"));
}

absl::StatusOr<MadeCertificate> MakeAuthority(const std::string& common_name, int64_t now_unix_seconds,
                                              int days) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailed("make a key");
  MYCC_ASSIGN_OR_RETURN(const X509Ptr made, Begin(common_name, key.get(), nullptr, {now_unix_seconds, days}));
  X509* const own = made.get();
  MYCC_RETURN_IF_ERROR(AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  MYCC_RETURN_IF_ERROR(AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign"));
  MYCC_RETURN_IF_ERROR(AddExtension(own, own, NID_subject_key_identifier, "hash"));
  return SignAndPrint(own, key.get(), key.get());
}

absl::StatusOr<MadeCertificate> MakeCertificate(const CertificateWish& wish,
                                                const MadeCertificate& authority) {
  const Pem pem(
      BIO_new_mem_buf(authority.certificate.data(), static_cast<int>(authority.certificate.size())));
  const Pem pem_key(BIO_new_mem_buf(authority.key.data(), static_cast<int>(authority.key.size())));
  const X509Ptr issuer(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
  const KeyPtr signing(PEM_read_bio_PrivateKey(pem_key.get(), nullptr, nullptr, nullptr));
  const bool is_pair =
      issuer != nullptr && signing != nullptr && X509_check_private_key(issuer.get(), signing.get()) == 1;
  ERR_clear_error();
  if (!is_pair)
    return absl::InvalidArgumentError(
        "the authority's key is not that of its certificate; expected ca.pem and its ca.key");
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailed("make a key");
  MYCC_ASSIGN_OR_RETURN(const X509Ptr made,
                        Begin(wish.common_name, key.get(), X509_get_subject_name(issuer.get()),
                              {wish.now_unix_seconds, wish.days}));
  const bool is_server = wish.use == CertificateUse::kServer;
  const std::vector<std::pair<int, std::string>> extensions = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, is_server ? "serverAuth" : "clientAuth"},
      {NID_subject_key_identifier, "hash"},
      {NID_authority_key_identifier, "keyid:always"}};
  for (const auto& [kind, value] : extensions)
    MYCC_RETURN_IF_ERROR(AddExtension(made.get(), issuer.get(), kind, value));
  std::vector<std::string> names;
  for (const std::string& host : wish.hosts) {
    MYCC_RETURN_IF_ERROR(CheckHost(host));
    names.push_back(absl::StrCat(IsAddress(host) ? "IP:" : "DNS:", host));
  }
  if (!names.empty())
    MYCC_RETURN_IF_ERROR(
        AddExtension(made.get(), issuer.get(), NID_subject_alt_name, absl::StrJoin(names, ",")));
  return SignAndPrint(made.get(), key.get(), signing.get());
}

}  // namespace mycc
