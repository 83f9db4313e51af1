// Access over real connections to a real server: certificates and tokens, what each role may do, and bounds.
#include "tests/server/access_server.h"

#include <chrono>
#include <future>
#include <utility>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "proto/server_facts.h"
#include "proto/tuning.grpc.pb.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

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

// It is kept with the session: ten thousand workers of a hostile caller must fit into memory.
TEST_F(AccessServerTest, ARegistrationHasABoundedSize) {
  const auto link = *ConnectToServer(As("worker"));
  v1::RegisterRequest request = Registration("w");
  for (int i = 0; i < 5000; ++i) {
    v1::LeaseId& held = *request.add_held();
    held.set_trial(std::string(30 + i % 200, 't'));
  }
  EXPECT_TRUE(link->Register(request).ok()) << "what it holds is not kept";
  request.mutable_devices(0)->mutable_info()->set_driver(std::string(70'000, 'd'));
  const absl::Status refused = link->Register(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("expected at most 65536"));
  request.mutable_devices(0)->clear_info();
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(1000, std::string(70'000, 'u'));
  EXPECT_TRUE(absl::IsInvalidArgument(link->Register(request).status())) << "a field that nobody knows";
}

// The version and the clock of the server are for those who may ask.
TEST_F(AccessServerTest, AStrangerLearnsNothingOfTheServer) {
  const auto facts_for = [](const ServerAddress& address) {
    const ServerChannel channel = *ServerChannel::Open(address);
    grpc::ClientContext context;
    channel.Prepare(&context, 10);
    v1::ListDevicesResponse response;
    (void)v1::TuningService::NewStub(channel.channel())
        ->ListDevices(&context, v1::ListDevicesRequest(), &response);
    return context.GetServerInitialMetadata().count(kVersionMetadata) +
           context.GetServerInitialMetadata().count(kTimeMetadata);
  };
  EXPECT_EQ(facts_for(As("admin")), 2u);
  EXPECT_EQ(facts_for({.address = server_->address(), .tls_ca_file = Path("ca.pem")}), 0u);
  EXPECT_EQ(facts_for(As("worker")), 0u);
}

TEST(ServerWordsTest, ACommandThatIsShownWorksWhenItIsPasted) {
  EXPECT_EQ(ServerWords({.address = "farm:1", .credentials = "ann"}), " --server farm:1 --credentials ann");
  EXPECT_EQ(ServerWords({.address = "farm:1", .tls_ca_file = "ca.pem", .token_file = "token"}),
            " --server farm:1 --tls-ca ca.pem --token-file token");
}

TEST_F(AccessServerTest, AClientKnowsItsNameAtTheServer) {
  const auto ann = *TuningClient::Connect(As("ann")), reader = *TuningClient::Connect(As("reader"));
  EXPECT_EQ(ann->caller(), "") << "before a call";
  ASSERT_TRUE(ann->ListJobs(1).ok());
  EXPECT_EQ(ann->caller(), "ann");
  ASSERT_TRUE(reader->ListOwners().ok());
  EXPECT_EQ(reader->caller(), "reader") << "by a token, which has no name of its own";
}

TEST_F(AccessServerTest, JobsOfOthersAreCancelledByAnAdminAlone) {
  const auto job = SubmitAs("ann");
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status others = (*TuningClient::Connect(As("bob")))->Cancel(job->job()).status();
  EXPECT_TRUE(absl::IsPermissionDenied(others)) << others;
  EXPECT_THAT(std::string(others.message()), HasSubstr(" is for ann or an admin; bob has submit"));
  const auto cancelled = (*TuningClient::Connect(As("admin")))->Cancel(job->job(), "eve");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->message(), "cancelled by admin") << "the server's own name of the caller";
}

TEST_F(AccessServerTest, AJobIsNotEndedByAnotherWhoLeavesIt) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kOtherWorkload}, 4);
  request.set_client("of ann");
  const auto ann = *TuningClient::Connect(As("ann")), bob = *TuningClient::Connect(As("bob"));
  const auto job = ann->Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner(), "ann");
  ASSERT_TRUE(bob->Watch(job->job(), 0, 0, "of bob").ok());
  const auto left = bob->Leave(job->job(), "of ann");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_NE(left->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_NE(bob->Leave(job->job(), "of bob")->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_NE(ann->Watch(job->job(), 0, 0)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(ann->Cancel(job->job())->message(), "cancelled by ann") << "her own";
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

TEST_F(AccessServerTest, AConnectionWithoutACertificateCanBeRefused) {
  listen_.tls_require_client_certificate = true;
  Start();
  EXPECT_TRUE(ListAs(As("ann")).ok());
  EXPECT_TRUE(absl::IsUnavailable(ListAs(As("reader")))) << "a token alone";
}

TEST_F(AccessServerTest, TokensNeedNoAuthorityOfClients) {
  listen_.tls_client_ca_file.clear();
  Start();
  EXPECT_TRUE(ListAs(As("reader")).ok()) << ListAs(As("reader"));
  EXPECT_TRUE(absl::IsUnauthenticated(ListAs(As("ann")))) << "nobody asks for her certificate";
  const std::string token = folder_.Path("token");
  std::ofstream(token) << "sesame\n";
  listen_.access_file.clear();
  listen_.token_file = token;
  Start();
  ServerAddress shared = {.address = server_->address(), .tls_ca_file = Path("ca.pem"), .token_file = token};
  EXPECT_TRUE(ListAs(shared).ok()) << ListAs(shared);
  EXPECT_TRUE(absl::IsUnauthenticated(ListAs(As("reader"))));
  Changed(Folder().RotateServer({}, 30));
  EXPECT_TRUE(ListAs(shared).ok()) << "with the server's new certificate";
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
              HasSubstr("expected --credentials, --access or --token-file"));
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
