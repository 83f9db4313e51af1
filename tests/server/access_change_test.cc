// Callers, certificates and authorities that change while a server runs and callers wait.
#include <chrono>
#include <future>
#include <thread>

#include "proto/certificates.h"
#include "tests/server/access_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kDaySeconds = 86400;

TEST_F(AccessServerTest, RevocationEndsACallThatWaits) {
  const auto link = *ConnectToServer(As("worker"));
  const auto registered = link->Register(Registration("w"));
  ASSERT_TRUE(registered.ok()) << registered.status();
  auto leased = std::async(std::launch::async,
                           [&] { return link->Lease(Waiting(registered->session(), 50)).status(); });
  EXPECT_EQ(leased.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  const auto begin = std::chrono::steady_clock::now();
  Changed(Folder().Revoke("worker"));
  const absl::Status ended = leased.get();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_TRUE(absl::IsPermissionDenied(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("the access of worker was revoked"));
  EXPECT_TRUE(absl::IsPermissionDenied(link->Register(Registration("w")).status()))
      << "over the open connection";
  EXPECT_TRUE(
      absl::IsPermissionDenied((*ConnectToServer(As("worker")))->Register(Registration("w")).status()));
}

TEST_F(AccessServerTest, TheServerLooksAtTheFilesByItself) {
  EXPECT_TRUE(ListAs(As("ann")).ok());
  ASSERT_TRUE(Folder().Revoke("ann").ok());
  bool refused = false;
  for (int i = 0; i < 100 && !refused; ++i) {
    refused = absl::IsPermissionDenied(ListAs(As("ann")));
    if (!refused) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(refused);
}

// A client that runs for months follows the files of its credentials.
TEST_F(AccessServerTest, AClientTakesItsNewToken) {
  const auto client = *TuningClient::Connect(As("reader"));
  EXPECT_TRUE(client->ListJobs(1).ok());
  Changed(Folder().Rotate("reader", 0, 30));
  EXPECT_TRUE(client->ListJobs(1).ok());
}

TEST_F(AccessServerTest, AClientTakesItsNewCertificate) {
  listen_.connection_seconds = 0.5;
  Start();
  const auto link = *ConnectToServer(As("worker"));
  ASSERT_TRUE(link->Register(Registration("w")).ok());
  Changed(Folder().Rotate("worker", 0, 30));
  absl::Status status = absl::UnknownError("");
  for (int i = 0; i < 100 && !status.ok(); ++i) {
    status = link->Register(Registration("w")).status();
    if (!status.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(AccessServerTest, TheEarlierSecretCountsForAWhile) {
  const absl::StatusOr<std::string> earlier = ReadFile(Path("reader/token"));
  std::ofstream(folder_.Path("earlier")) << *earlier;
  Changed(Folder().Rotate("reader", 3600, 30));
  const ServerAddress old = {
      .address = server_->address(), .tls_ca_file = Path("ca.pem"), .token_file = folder_.Path("earlier")};
  EXPECT_TRUE(ListAs(old).ok());
  EXPECT_TRUE(ListAs(As("reader")).ok());
  Changed(Folder().Rotate("reader", 0, 30));
  EXPECT_TRUE(absl::IsUnauthenticated(ListAs(old)));
}

TEST_F(AccessServerTest, TheServersCertificateIsReplacedWhileItRuns) {
  const auto open = *TuningClient::Connect(As("ann"));
  EXPECT_TRUE(open->ListJobs(1).ok());
  const std::string earlier = *ReadFile(Path("ca.pem"));
  Changed(Folder().RotateAuthority());
  Changed(Folder().RotateServer({}, 30));
  EXPECT_TRUE(open->ListJobs(1).ok()) << "an open connection goes on";
  EXPECT_TRUE(ListAs(As("ann")).ok()) << "certificates of the earlier authority still count";
  std::ofstream(folder_.Path("earlier.pem")) << earlier;
  const absl::Status untrusting = ListAs({.address = server_->address(),
                                          .tls_ca_file = folder_.Path("earlier.pem"),
                                          .token_file = Path("reader/token")});
  EXPECT_THAT(std::string(untrusting.message()), HasSubstr("its certificate is not signed by --tls-ca"));
  for (const char* name : {"ann", "bob", "admin", "worker"}) Changed(Folder().Rotate(name, 3600, 30));
  Changed(Folder().DropOldAuthority());
  EXPECT_TRUE(ListAs(As("ann")).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(open->ListJobs(1).status()))
      << "its certificate is of the earlier authority";
}

TEST_F(AccessServerTest, AnotherAuthoritysCertificatesAreRefused) {
  const std::string other = folder_.Path("other");
  ASSERT_TRUE(CredentialFolder::Init(other, {}, 30).ok());
  ServerAddress address = {.address = server_->address(), .tls_ca_file = Path("ca.pem")};
  address.tls_cert_file = other + "/admin/cert.pem";
  address.tls_key_file = other + "/admin/key.pem";
  EXPECT_TRUE(absl::IsUnavailable(ListAs(address))) << ListAs(address);
  const absl::Status untrusting = ListAs({.address = server_->address(), .credentials = other + "/admin"});
  EXPECT_THAT(std::string(untrusting.message()), HasSubstr("its certificate is not signed by --tls-ca"));
}

TEST_F(AccessServerTest, ExpiredCertificatesAreRefused) {
  const MadeCertificate authority = {*ReadFile(Path("ca.pem")), *ReadFile(Path("ca.key"))};
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto made = MakeCertificate(
      {.common_name = "late", .now_unix_seconds = now - 10 * kDaySeconds, .days = 5}, authority);
  ASSERT_TRUE(made.ok()) << made.status();
  std::ofstream(folder_.Path("late.pem")) << made->certificate;
  std::ofstream(folder_.Path("late.key")) << made->key;
  AccessList list = Folder().callers();
  Principal late;
  late.name = "late";
  late.roles = {Role::kAdmin};
  late.certificates = {{ReadCertificate(made->certificate)->sha256}};
  ASSERT_TRUE(list.Add(late).ok());
  std::ofstream(Path("access.json")) << list.Print();
  Changed(absl::OkStatus());
  ServerAddress address = {.address = server_->address(), .tls_ca_file = Path("ca.pem")};
  address.tls_cert_file = folder_.Path("late.pem");
  address.tls_key_file = folder_.Path("late.key");
  EXPECT_TRUE(absl::IsUnavailable(ListAs(address))) << ListAs(address);
}

// Callers whose certificates an authority renews are known by their common names. Their open connections end
// to count when the authority does.
TEST_F(AccessServerTest, AnAuthorityThatIsDroppedCountsNoMoreOnOpenConnections) {
  AccessList list = Folder().callers();
  Principal ann = *list.Find("ann");
  ann.certificates.clear();
  ann.common_names = {"ann"};
  ASSERT_TRUE(list.Replace(ann).ok());
  std::ofstream(Path("access.json")) << list.Print();
  Changed(absl::OkStatus());
  const auto open = *TuningClient::Connect(As("ann"));
  EXPECT_TRUE(open->ListJobs(1).ok());
  ASSERT_TRUE(CredentialFolder::Init(folder_.Path("other"), {}, 30).ok());
  std::ofstream(Path("ca.pem")) << *ReadFile(folder_.Path("other/ca.pem"));
  Changed(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnauthenticated(open->ListJobs(1).status()));
}

TEST_F(AccessServerTest, ABrokenFileLeavesTheCallersAsTheyWere) {
  const std::string sound = *ReadFile(Path("access.json"));
  std::ofstream(Path("access.json")) << "{ \"version\": 1, \"princ";
  Changed(absl::OkStatus());
  server_->RefreshAccess();
  EXPECT_TRUE(ListAs(As("ann")).ok());
  const std::string said = Said();
  const size_t at = said.find("the callers stay as they were: `");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("the callers stay", at + 1), std::string::npos) << "it says so once: " << said;
  std::ofstream(Path("server/key.pem")) << *ReadFile(Path("ca.key"));
  Changed(absl::OkStatus());
  EXPECT_THAT(Said(), HasSubstr("the certificates stay as they were: "));
  EXPECT_TRUE(ListAs(As("ann")).ok()) << "a key that is not the certificate's is not taken";
  std::ofstream(Path("access.json")) << sound;
  Changed(Folder().Revoke("ann"));
  EXPECT_TRUE(absl::IsPermissionDenied(ListAs(As("ann"))));
}

}  // namespace
}  // namespace mycc
