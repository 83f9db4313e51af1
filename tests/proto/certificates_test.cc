// Checks of PEM files: sound ones pass, others are named.
#include "proto/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace mycc {
namespace {

using ::testing::HasSubstr;

std::string TextOf(BIO* bytes) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bytes, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bytes);
  return pem;
}

// A key and a certificate that it has signed itself.
struct Pair {
  Pair() {
    EVP_PKEY* made = EVP_EC_gen("P-256");
    X509* signed_by_itself = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(signed_by_itself), 0);
    X509_gmtime_adj(X509_getm_notAfter(signed_by_itself), 3600);
    X509_set_pubkey(signed_by_itself, made);
    X509_sign(signed_by_itself, made, EVP_sha256());
    BIO* bytes = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bytes, signed_by_itself);
    certificate = TextOf(bytes);
    bytes = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bytes, made, nullptr, nullptr, 0, nullptr, nullptr);
    key = TextOf(bytes);
    X509_free(signed_by_itself);
    EVP_PKEY_free(made);
  }
  std::string certificate, key;
};

class CertificatesTest : public testing::Test {
 protected:
  const Pair own_, other_;
};

TEST_F(CertificatesTest, WhatIsSoundPasses) {
  EXPECT_TRUE(CheckCertificates(own_.certificate, "ca.pem").ok());
  EXPECT_TRUE(
      CheckCertificates(std::string("Issuer: somebody\n") + own_.certificate + other_.certificate, "ca.pem")
          .ok());
  EXPECT_TRUE(CheckKey(own_.key, "key.pem", own_.certificate).ok());
}

TEST_F(CertificatesTest, OtherFilesAreNamed) {
  for (const std::string& text : {std::string(), std::string("garbage"), own_.key, std::string(5000, '\0')}) {
    const absl::Status status = CheckCertificates(text, "ca.pem");
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("`ca.pem` holds no certificate; expected PEM"));
  }
  for (const std::string& text : {std::string(), std::string("garbage"), own_.certificate}) {
    EXPECT_THAT(std::string(CheckKey(text, "key.pem", own_.certificate).message()),
                HasSubstr("`key.pem` holds no private key; expected PEM"));
  }
}

TEST_F(CertificatesTest, MalformedOnesAreCounted) {
  const std::string bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(std::string(CheckCertificates(bad, "ca.pem").message()),
              HasSubstr("malformed certificate, number 1"));
  EXPECT_THAT(std::string(CheckCertificates(own_.certificate + bad, "ca.pem").message()),
              HasSubstr("malformed certificate, number 2"));
  const std::string cut = own_.certificate.substr(0, 200);
  EXPECT_FALSE(CheckCertificates(cut, "ca.pem").ok());
}

TEST_F(CertificatesTest, AKeyBelongsToItsCertificate) {
  EXPECT_THAT(std::string(CheckKey(own_.key, "key.pem", other_.certificate).message()),
              HasSubstr("`key.pem` is not the key of the certificate"));
}

}  // namespace
}  // namespace mycc
