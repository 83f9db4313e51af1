#include "server/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <atomic>

namespace mycc {
namespace {

// gRPC's C++ interface has no such credentials; its C interface has.
class WatchedTls final : public grpc::ServerCredentials {
 public:
  WatchedTls(const AccessFiles* files, grpc_ssl_client_certificate_request_type request) : files_(files) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &WatchedTls::Fetch, this));
  }
  ~WatchedTls() override { grpc_server_credentials_release(credentials_); }

  // Calls are looked at in call_gate.h, on addresses with and without TLS alike.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // Called before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config) {
    auto* const tls = static_cast<WatchedTls*>(self);
    const uint64_t version = tls->files_->tls_version();
    if (tls->given_.exchange(version) == version) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const TlsTexts texts = tls->files_->tls();
    const grpc_ssl_pem_key_cert_pair pair = {texts.key.c_str(), texts.certificates.c_str()};
    // gRPC asserts that there are authorities, also where it asks no client for a certificate.
    const std::string& authorities = texts.client_ca.empty() ? texts.certificates : texts.client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const AccessFiles* const files_;
  std::atomic<uint64_t> given_ = 0;
  grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> WatchedTlsCredentials(const AccessFiles* files, bool require) {
  const bool asks = !files->tls().client_ca.empty();
  const auto request = !asks     ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                       : require ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                 : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
  return std::make_shared<WatchedTls>(files, request);
}

}  // namespace mycc
