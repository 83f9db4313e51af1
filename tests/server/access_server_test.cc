// Access over real connections to a real server: certificates and tokens, what each role may do, and changes
// while the server runs and callers wait.
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "mycc_tune/credential_folder.h"
#include "mycc_tune/tuning_client.h"
#include "proto/certificates.h"
#include "server/grpc_server.h"
#include "server/server_loop.h"
#include "tests/server/fake_server.h"
#include "tests/server/judged.h"
#include "worker/grpc_link.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kDaySeconds = 86400;

class AccessServerTest : public ::testing::Test {
 protected:
  AccessServerTest() {
    EXPECT_TRUE(CredentialFolder::Init(Path(""), {"farm.example.org"}, 30).ok());
    Add("ann", Role::kSubmit, SecretKind::kCertificate);
    Add("bob", Role::kSubmit, SecretKind::kCertificate);
    Add("reader", Role::kRead, SecretKind::kToken);
    auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kServe);
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    loop_ = std::make_unique<ServerLoop>(ServerLoopOptions(), log_.get(), &SystemTime());
    EXPECT_TRUE(loop_->Start().ok());
    listen_.address = "127.0.0.1:0";
    listen_.tls_cert_file = Path("server/cert.pem");
    listen_.tls_key_file = Path("server/key.pem");
    listen_.tls_client_ca_file = Path("ca.pem");
    listen_.access_file = Path("access.json");
    listen_.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_ += line + "\n";
    };
  }
  void SetUp() override {
    if (!kGrpcCanBeJudged) GTEST_SKIP() << "gRPC is not instrumented";
    Start();
  }
  void Start() {
    server_.reset();
    auto server = GrpcServer::Start(listen_, loop_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string Path(const std::string& name) {
    return folder_.Path("auth") + (name.empty() ? "" : "/" + name);
  }
  CredentialFolder Folder() { return *CredentialFolder::Open(Path("")); }
  void Add(const std::string& name, Role role, SecretKind secret) {
    NewCaller caller{.name = name, .roles = {role}, .secret = secret, .days = 30};
    EXPECT_TRUE(Folder().Add(caller).ok());
  }
  // The callers have changed: the server looks now, where it would within a second.
  void Changed(const absl::Status& change) {
    EXPECT_TRUE(change.ok()) << change;
    server_->RefreshAccess();
  }
  std::string Said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

  ServerAddress As(const std::string& name) {
    return {.address = server_->address(), .credentials = Path(name)};
  }
  absl::Status ListAs(const ServerAddress& address) {
    const auto client = TuningClient::Connect(address);
    return client.ok() ? (*client)->ListJobs(1).status() : client.status();
  }
  absl::StatusOr<v1::JobProgress> SubmitAs(const std::string& name) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = MakeSpec({kOtherWorkload}, 4);
    return (*TuningClient::Connect(As(name)))->Submit(request);
  }
  static v1::RegisterRequest Registration(const std::string& worker) {
    v1::RegisterRequest request;
    request.set_worker(worker);
    request.set_instance(worker);
    request.add_devices()->set_device("cpu");
    request.mutable_devices(0)->set_target(kTestTarget);
    return request;
  }
  static v1::LeaseRequest Waiting(const std::string& session, double seconds) {
    v1::LeaseRequest request;
    request.set_session(session);
    request.set_device("cpu");
    request.set_max_trials(1);
    request.set_wait_seconds(seconds);
    return request;
  }

  TestFolder folder_;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
  ListenOptions listen_;
  std::mutex mutex_;
  std::string said_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(AccessServerTest, EachRoleDoesItsOwn) {
  EXPECT_TRUE(ListAs(As("admin")).ok());
  EXPECT_TRUE(ListAs(As("ann")).ok());
  EXPECT_TRUE(ListAs(As("reader")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ListAs(As("worker"))));
  EXPECT_TRUE(SubmitAs("ann").ok());
  const absl::Status refused = SubmitAs("reader").status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_EQ(refused.message(),
            "SubmitJob needs the role submit, and reader has read; an admin gives it: mycc-tune auth grant "
            "reader --role submit");
  EXPECT_TRUE((*ConnectToServer(As("worker")))->Register(Registration("w")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*ConnectToServer(As("ann")))->Register(Registration("v")).status()));
  EXPECT_TRUE(
      absl::IsUnauthenticated(ListAs({.address = server_->address(), .tls_ca_file = Path("ca.pem")})));
  EXPECT_TRUE(absl::IsUnavailable(ListAs({.address = server_->address()}))) << "without TLS";
  Changed(Folder().Grant("reader", {Role::kSubmit}));
  EXPECT_TRUE(SubmitAs("reader").ok());
  Changed(Folder().Deny("reader", {Role::kSubmit}));
  EXPECT_TRUE(absl::IsPermissionDenied(SubmitAs("reader").status()));
}

TEST_F(AccessServerTest, TheOwnerOfAWorkerIsItsCaller) {
  ASSERT_TRUE((*ConnectToServer(As("worker")))->Register(Registration("w")).ok());
  const auto devices = (*TuningClient::Connect(As("admin")))->ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].owner(), "worker");
}

TEST_F(AccessServerTest, JobsOfOthersAreCancelledByAnAdminAlone) {
  const auto job = SubmitAs("ann");
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status others = (*TuningClient::Connect(As("bob")))->Cancel(job->job()).status();
  EXPECT_TRUE(absl::IsPermissionDenied(others)) << others;
  EXPECT_THAT(std::string(others.message()), HasSubstr("needs the role admin, and bob has submit"));
  const auto cancelled = (*TuningClient::Connect(As("admin")))->Cancel(job->job(), "eve");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->message(), "cancelled by admin") << "the server's own name of the caller";
}

TEST_F(AccessServerTest, ReadersDoNotKeepJobsRunning) {
  const auto job = SubmitAs("ann");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto reader = *TuningClient::Connect(As("reader"));
  EXPECT_TRUE(reader->Watch(job->job(), 0, 0).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(reader->Watch(job->job(), 0, 0, "client").status()));
}

TEST_F(AccessServerTest, ASessionIsOfNoUseToAnotherCaller) {
  Add("other", Role::kWork, SecretKind::kCertificate);
  Changed(absl::OkStatus());
  const auto registered = (*ConnectToServer(As("worker")))->Register(Registration("w"));
  ASSERT_TRUE(registered.ok()) << registered.status();
  v1::HeartbeatRequest beat;
  beat.set_session(registered->session());
  EXPECT_TRUE(absl::IsPermissionDenied((*ConnectToServer(As("other")))->Heartbeat(beat).status()));
  EXPECT_TRUE((*ConnectToServer(As("worker")))->Heartbeat(beat).ok());
}

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

TEST_F(AccessServerTest, AConnectionWithoutACertificateCanBeRefused) {
  listen_.tls_require_client_certificate = true;
  Start();
  EXPECT_TRUE(ListAs(As("ann")).ok());
  EXPECT_TRUE(absl::IsUnavailable(ListAs(As("reader")))) << "a token alone";
}

TEST_F(AccessServerTest, CallsOfOneCallerAreBounded) {
  listen_.bounds.calls_of_one = 2;
  Start();
  const auto link = *ConnectToServer(As("worker"));
  const auto registered = link->Register(Registration("w"));
  ASSERT_TRUE(registered.ok()) << registered.status();
  std::vector<std::future<absl::Status>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(std::async(std::launch::async,
                               [&] { return link->Lease(Waiting(registered->session(), 1)).status(); }));
  int refused = 0;
  for (auto& call : calls) refused += absl::IsResourceExhausted(call.get());
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(ListAs(As("ann")).ok()) << "others are served";
  EXPECT_TRUE(link->Lease(Waiting(registered->session(), 0)).ok()) << "and so is the caller, afterwards";
}

TEST_F(AccessServerTest, MessagesAreBounded) {
  const absl::Status refused =
      (*ConnectToServer(As("worker")))->Register(Registration(std::string(300, 'w'))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(), "RegisterRequest.worker has 300 bytes; expected at most 256");
}

// An answer to "which services are there?", in bytes; empty where the call was refused.
std::string AskReflection(const ServerAddress& address) {
  const auto channel = ServerChannel::Open(address);
  grpc::GenericStub stub(channel->channel());
  grpc::ClientContext context;
  channel->Prepare(&context, 10);
  const grpc::Slice question(std::string("\x3a\x00", 2));
  grpc::ByteBuffer request(&question, 1), response;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices)
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

TEST_F(AccessServerTest, ReflectionIsForReaders) {
  EXPECT_THAT(AskReflection(As("reader")), HasSubstr("mycc.v1.WorkerService"));
  EXPECT_EQ(AskReflection(As("worker")), "");
  EXPECT_EQ(AskReflection({.address = server_->address(), .tls_ca_file = Path("ca.pem")}), "");
}

TEST_F(AccessServerTest, OptionsThatDoNotBelongTogetherAreRefused) {
  const auto why = [this](const std::function<void(ListenOptions*)>& change) {
    ListenOptions options = listen_;
    change(&options);
    return std::string(GrpcServer::Check(options).message());
  };
  EXPECT_EQ(why([](ListenOptions*) {}), "");
  EXPECT_THAT(why([](ListenOptions* o) { o->token_file = o->access_file; }),
              HasSubstr("expected one of the two"));
  EXPECT_THAT(why([](ListenOptions* o) { o->access_file.clear(); }),
              HasSubstr("expected --access or --token-file"));
  EXPECT_THAT(why([](ListenOptions* o) { o->tls_key_file.clear(); }),
              HasSubstr("--tls-cert and --tls-key belong together"));
  EXPECT_THAT(
      why([](ListenOptions* o) { o->tls_client_ca_file.clear(), o->tls_require_client_certificate = true; }),
      HasSubstr("needs --tls-client-ca"));
  EXPECT_THAT(why([](ListenOptions* o) { *o = {.address = "0.0.0.0:0", .access_file = o->access_file}; }),
              HasSubstr("can be reached from other hosts"))
      << "tokens would travel in the clear";
}

// This process itself is the server's own user. Other users are tests/e2e/auth_test.cc's.
TEST_F(AccessServerTest, TheServersOwnUserNeedsNothingOnALocalAddress) {
  for (const std::string& address : {std::string("127.0.0.1:0"), "unix:" + folder_.Path("socket")}) {
    listen_ = {.address = address};
    Start();
    EXPECT_TRUE(ListAs({.address = server_->address()}).ok()) << address;
    listen_.access_file = Path("access.json");
    Start();
    EXPECT_TRUE(ListAs({.address = server_->address()}).ok()) << address;
    const ServerAddress reader = {.address = server_->address(), .token_file = Path("reader/token")};
    EXPECT_TRUE(ListAs(reader).ok()) << address;
    v1::SubmitJobRequest request;
    EXPECT_TRUE(absl::IsPermissionDenied((*TuningClient::Connect(reader))->Submit(request).status()))
        << "a token that is shown says who calls";
  }
}

}  // namespace
}  // namespace mycc
