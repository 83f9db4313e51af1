// The doctor's checks of certificates, keys and tokens, on certificates that the tests sign.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "doctor/address.h"
#include "doctor/certificate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/doctor/fake_host.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'800'000'000, kDay = 24 * 3600;

std::string TakeText(BIO* bytes) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bytes, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bytes);
  return pem;
}

// A certificate with its key, signed by another one or by itself.
class Certificate {
 public:
  Certificate(const std::string& subject, const std::string& names, int64_t begin, int64_t end,
              const Certificate* signer = nullptr)
      : key_(EVP_EC_gen("P-256")), x509_(X509_new()) {
    const Certificate* const by = signer == nullptr ? this : signer;
    X509_set_version(x509_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509_), signer == nullptr ? 1 : 2);
    ASN1_TIME_set(X509_getm_notBefore(x509_), begin);
    ASN1_TIME_set(X509_getm_notAfter(x509_), end);
    X509_set_pubkey(x509_, key_);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509_), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
    X509_set_issuer_name(x509_, X509_get_subject_name(by->x509_));
    if (signer == nullptr) Extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) Extend(NID_subject_alt_name, names);
    X509_sign(x509_, by->key_, EVP_sha256());
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;
  ~Certificate() {
    X509_free(x509_);
    EVP_PKEY_free(key_);
  }

  std::string Pem() const {
    BIO* const bytes = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bytes, x509_);
    return TakeText(bytes);
  }
  std::string KeyPem() const {
    BIO* const bytes = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bytes, key_, nullptr, nullptr, 0, nullptr, nullptr);
    return TakeText(bytes);
  }

 private:
  void Extend(int nid, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    X509_add_ext(x509_, extension, -1);
    X509_EXTENSION_free(extension);
  }

  EVP_PKEY* const key_;
  X509* const x509_;
};

auto CertificateIs(Verdict verdict, const std::string& words) {
  return AllOf(Field(&Finding::verdict, verdict), Field(&Finding::found, HasSubstr(words)));
}

class CertificateChecksTest : public ::testing::Test {
 protected:
  void UseServer(const Certificate& certificate, const std::string& key) {
    host_.Write("/server.pem", certificate.Pem());
    host_.Write("/server.key", key);
    installation_.certificates = host_.Path("server.pem");
    installation_.key = host_.Path("server.key");
  }

  FakeHost host_;
  Installation& installation_ = host_.installation;
  const Certificate ca_{"farm CA", "", kNow - kDay, kNow + 1000 * kDay};
  const Certificate server_{"farm", "DNS:farm.example.org,IP:10.0.0.7,IP:::1", kNow - kDay, kNow + 100 * kDay,
                            &ca_};
};

TEST_F(CertificateChecksTest, SoundServer) {
  UseServer(server_, server_.KeyPem());
  host_.Write("/ca.pem", ca_.Pem());
  installation_.server =
      ServerAddress{.address = "farm.example.org:7070", .tls_ca_file = host_.Path("ca.pem")};
  EXPECT_THAT(CheckOwnCertificate(installation_),
              ElementsAre(CertificateIs(Verdict::kOk, "(CN = farm) is valid for 100 days"),
                          CertificateIs(Verdict::kOk, "for farm.example.org, 10.0.0.7, ::1")));
  EXPECT_THAT(CheckTrust(installation_), ElementsAre(CertificateIs(Verdict::kOk, "valid for 1000 days")));
}

TEST_F(CertificateChecksTest, NothingToCheck) {
  for (const Check check : {CheckOwnCertificate, CheckTrust, CheckSecrets})
    EXPECT_THAT(check(installation_), IsEmpty());
}

TEST_F(CertificateChecksTest, Time) {
  UseServer(server_, server_.KeyPem());
  const auto at = [this](int64_t now) {
    installation_.system.unix_seconds = [now] { return now; };
    return CheckOwnCertificate(installation_)[0];
  };
  EXPECT_THAT(at(kNow + 95 * kDay), CertificateIs(Verdict::kWarning, "expires in 5 days"));
  EXPECT_THAT(at(kNow + 100 * kDay), CertificateIs(Verdict::kFault, "has expired"));
  EXPECT_THAT(at(kNow - 2 * kDay), CertificateIs(Verdict::kFault, "not valid yet"));
}

TEST_F(CertificateChecksTest, NameOfTheAddress) {
  UseServer(server_, server_.KeyPem());
  installation_.listen = "10.0.0.7:7070";
  EXPECT_THAT(CheckOwnCertificate(installation_), Each(Field(&Finding::verdict, Verdict::kOk)));
  installation_.listen = "10.0.0.8:7070";
  EXPECT_THAT(CheckOwnCertificate(installation_),
              Contains(CertificateIs(Verdict::kWarning, "not for 10.0.0.8")));
  installation_.listen = "0.0.0.0:7070";
  EXPECT_THAT(CheckOwnCertificate(installation_), Each(Field(&Finding::verdict, Verdict::kOk)));
  UseServer(ca_, ca_.KeyPem());
  EXPECT_THAT(CheckOwnCertificate(installation_),
              Contains(CertificateIs(Verdict::kFault, "no subjectAltName")));
}

TEST_F(CertificateChecksTest, KeyOfAnother) {
  UseServer(server_, ca_.KeyPem());
  EXPECT_THAT(CheckOwnCertificate(installation_),
              Contains(CertificateIs(Verdict::kFault, "not the key of the certificate")));
}

TEST_F(CertificateChecksTest, CredentialOfAClient) {
  EXPECT_THAT(CheckCredential(installation_), IsEmpty());
  host_.Write("/cert.pem", server_.Pem());
  host_.Write("/key.pem", server_.KeyPem());
  installation_.server =
      ServerAddress{.tls_cert_file = host_.Path("cert.pem"), .tls_key_file = host_.Path("key.pem")};
  EXPECT_THAT(CheckCredential(installation_), ElementsAre(CertificateIs(Verdict::kOk, "valid for 100 days")));
  host_.Write("/key.pem", ca_.KeyPem());
  EXPECT_THAT(CheckCredential(installation_), Contains(CertificateIs(Verdict::kFault, "not the key")));
  installation_.system.unix_seconds = [] { return kNow + 200 * kDay; };
  EXPECT_THAT(CheckCredential(installation_), Contains(CertificateIs(Verdict::kFault, "has expired")));
}

TEST_F(CertificateChecksTest, FilesThatAreMissingOrWrong) {
  installation_.certificates = host_.Path("none.pem");
  EXPECT_THAT(CheckOwnCertificate(installation_), ElementsAre(CertificateIs(Verdict::kFault, "none.pem")));
  host_.Write("/none.pem", "garbage");
  EXPECT_THAT(CheckOwnCertificate(installation_),
              ElementsAre(CertificateIs(Verdict::kFault, "no certificate")));
  installation_.server = ServerAddress{.tls_ca_file = host_.Path("none.pem")};
  EXPECT_THAT(CheckTrust(installation_), ElementsAre(CertificateIs(Verdict::kFault, "no certificate")));
}

TEST_F(CertificateChecksTest, SignedByAnother) {
  const Certificate other("another CA", "", kNow - kDay, kNow + 1000 * kDay);
  EXPECT_TRUE(CheckSigned(server_.Pem(), ca_.Pem()).ok());
  EXPECT_FALSE(CheckSigned(server_.Pem(), other.Pem()).ok());
  UseServer(server_, server_.KeyPem());
  host_.Write("/ca.pem", other.Pem());
  installation_.server = ServerAddress{.tls_ca_file = host_.Path("ca.pem")};
  EXPECT_THAT(CheckTrust(installation_), Contains(CertificateIs(Verdict::kFault, "is not signed by")));
}

TEST_F(CertificateChecksTest, ModesOfSecrets) {
  UseServer(server_, server_.KeyPem());
  host_.Write("/token", "secret");
  installation_.server = ServerAddress{.token_file = host_.Path("token")};
  ASSERT_EQ(chmod(host_.Path("server.key").c_str(), 0640), 0);
  ASSERT_EQ(chmod(host_.Path("token").c_str(), 0644), 0);
  EXPECT_THAT(CheckSecrets(installation_), ElementsAre(CertificateIs(Verdict::kOk, "server.key is closed"),
                                                       CertificateIs(Verdict::kFault, "token can be read")));
}

TEST_F(CertificateChecksTest, Addresses) {
  EXPECT_EQ(SplitAddress("[::1]:70")->host, "::1");
  EXPECT_EQ(SplitAddress("farm:70")->port, "70");
  EXPECT_FALSE(SplitAddress("unix:/run/socket").has_value());
  EXPECT_FALSE(SplitAddress("farm").has_value());
}

}  // namespace
}  // namespace mycc
