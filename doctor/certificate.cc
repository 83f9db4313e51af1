#include "doctor/certificate.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

template <auto kFree>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Memory = std::unique_ptr<BIO, Release<BIO_free_all>>;
using X509Pointer = std::unique_ptr<X509, Release<X509_free>>;

std::vector<X509Pointer> Parse(const std::string& pem) {
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<X509Pointer> certificates;
  while (X509* const next = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  ERR_clear_error();
  return certificates;
}

std::string TextIn(BIO* memory) {
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  return std::string(text, static_cast<size_t>(size));
}

int64_t SecondsOf(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = address->length == 4 ? AF_INET : AF_INET6;
  return inet_ntop(family, address->data, text, sizeof(text)) != nullptr ? text : "";
}

// Connected within the timeout, which holds for each read and write too; -1 with errno otherwise.
int Connect(const addrinfo& place, double timeout_seconds) {
  const int file = socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -1;
  const timeval timeout = {.tv_sec = static_cast<time_t>(timeout_seconds), .tv_usec = 0};
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  if (connect(file, place.ai_addr, place.ai_addrlen) == 0) return file;
  close(file);
  return -1;
}

absl::StatusOr<std::string> HandshakeOn(int file, const std::string& host) {
  const std::unique_ptr<SSL_CTX, Release<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<SSL, Release<SSL_free>> tls(SSL_new(context.get()));
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof(kHttp2));
  SSL_set_tlsext_host_name(tls.get(), host.c_str());
  SSL_set_fd(tls.get(), file);
  // A server that wants a certificate of ours has shown its own by then.
  (void)SSL_connect(tls.get());
  ERR_clear_error();
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(tls.get());
  if (chain == nullptr || sk_X509_num(chain) == 0) return absl::UnavailableError("it shows no certificate");
  const Memory memory(BIO_new(BIO_s_mem()));
  for (int i = 0; i < sk_X509_num(chain); ++i) PEM_write_bio_X509(memory.get(), sk_X509_value(chain, i));
  return TextIn(memory.get());
}

}  // namespace

std::vector<CertificateDates> FactsOf(const std::string& pem) {
  std::vector<CertificateDates> all;
  for (const X509Pointer& certificate : Parse(pem)) {
    const Memory memory(BIO_new(BIO_s_mem()));
    X509_NAME_print_ex(memory.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_ONELINE);
    all.push_back({.subject = TextIn(memory.get()),
                   .begin_unix_seconds = SecondsOf(X509_get0_notBefore(certificate.get())),
                   .end_unix_seconds = SecondsOf(X509_get0_notAfter(certificate.get()))});
  }
  return all;
}

bool IsFor(const std::string& pem, const std::string& name) {
  const std::vector<X509Pointer> certificates = Parse(pem);
  if (certificates.empty()) return false;
  X509* const own = certificates[0].get();
  return X509_check_ip_asc(own, name.c_str(), 0) == 1 ||
         X509_check_host(own, name.c_str(), name.size(), 0, nullptr) == 1;
}

std::string NamesIn(const std::string& pem) {
  const std::vector<X509Pointer> certificates = Parse(pem);
  if (certificates.empty()) return "";
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificates[0].get(), NID_subject_alt_name, nullptr, nullptr));
  const absl::Cleanup release = [names] { GENERAL_NAMES_free(names); };
  std::vector<std::string> texts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) {
      texts.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      texts.push_back(AddressText(name->d.iPAddress));
    }
  }
  return absl::StrJoin(texts, ", ");
}

absl::Status CheckSigned(const std::string& pem, const std::string& trusted) {
  const std::vector<X509Pointer> chain = Parse(pem), roots = Parse(trusted);
  if (chain.empty()) return absl::InvalidArgumentError("there is no certificate");
  const std::unique_ptr<X509_STORE, Release<X509_STORE_free>> store(X509_STORE_new());
  for (const X509Pointer& root : roots) X509_STORE_add_cert(store.get(), root.get());
  X509_STORE_set_flags(store.get(), X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
  STACK_OF(X509)* const others = sk_X509_new_null();
  const absl::Cleanup release = [others] { sk_X509_free(others); };
  for (const X509Pointer& each : chain) sk_X509_push(others, each.get());
  const std::unique_ptr<X509_STORE_CTX, Release<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  X509_STORE_CTX_init(check.get(), store.get(), chain[0].get(), others);
  if (X509_verify_cert(check.get()) == 1) return absl::OkStatus();
  const char* const why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
  ERR_clear_error();
  return absl::FailedPreconditionError(why);
}

absl::StatusOr<std::string> CertificatesOfServer(const std::string& host, const std::string& port,
                                                 double timeout_seconds) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* places = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &places); error != 0)
    return absl::UnavailableError(gai_strerror(error));
  const absl::Cleanup release = [places] { freeaddrinfo(places); };
  int file = -1;
  for (const addrinfo* place = places; place != nullptr && file < 0; place = place->ai_next)
    file = Connect(*place, timeout_seconds);
  if (file < 0) return absl::UnavailableError(std::strerror(errno));
  const absl::Cleanup shut = [file] { close(file); };
  return HandshakeOn(file, host);
}

}  // namespace mycc
