// A server whose callers are those of a folder of credentials, for tests over real connections.
#pragma once

#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "base/file.h"
#include "gtest/gtest.h"
#include "mycc_tune/credential_folder.h"
#include "mycc_tune/tuning_client.h"
#include "server/grpc_server.h"
#include "server/server_loop.h"
#include "tests/server/fake_server.h"
#include "tests/server/judged.h"
#include "worker/grpc_link.h"

namespace mycc {

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

}  // namespace mycc
